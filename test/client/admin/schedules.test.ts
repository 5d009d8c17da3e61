/** The administration of schedules. */
import { defineOrderedTask, defineTask, type MillOptions, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ConfigError, InvalidArgumentError, InvalidJobError, UnsupportedByStoreError } from '#src/core/errors.js'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

const report = defineTask({ name: 'report', input: z.object({ kind: z.string() }) })
/** Its schema answers later. */
const slow = defineTask({
  name: 'slow',
  input: z.object({ kind: z.string() }).refine(async (input) => input.kind !== 'none'),
})
const sync = defineTask({ name: 'sync', queue: 'syncs', run: () => {} })
const order = defineOrderedTask({ name: 'order', input: z.object({ id: z.string() }), id: ({ id }) => id })

const startAt = Date.parse('2026-11-25T10:07:00Z')
const at = (text: string) => new Date(`2026-11-${text}Z`)

/** A mill on a store whose clock stands at 10:07; `again`: another mill on the same store, as one that was deployed since. */
function scene(schedules?: MillOptions['schedules'], more: Partial<MillOptions> = {}) {
  const clock = new ManualClock(startAt)
  const data = new MemoryData()
  const again = (others?: MillOptions['schedules'], own: Partial<MillOptions> = more) => {
    const tasks = [report, slow, sync, order]
    const options = { ...own, tasks, ...(others === undefined ? {} : { schedules: others }) }
    return testMillOn(new MemoryStore(clock, data), options, clock)
  }
  return { clock, mill: again(schedules), again }
}

const kind = { kind: 'daily' }
const nightly = { cron: '0 3 * * *', timeZone: 'Europe/Zurich', task: report, input: kind } as const

describe('a schedule that is set at run time', () => {
  it('is returned with everything known about it', async () => {
    const { mill } = scene()
    const options = { ...nightly, onMissed: 'all', overlap: 'skip', jitter: '30s', until: '2030-01-01T00:00Z' } as const
    const enqueue = { priority: 3, meta: { by: 'me' } }

    expect(await mill.schedules.set('nightly', { ...options, enqueue })).toEqual({
      ...{ name: 'nightly', task: 'report', queue: 'default', input: kind, meta: { by: 'me' } },
      ...{ cron: '0 3 * * *', timeZone: 'Europe/Zurich', until: new Date('2030-01-01T00:00Z') },
      ...{ onMissed: 'all', overlap: 'skip', jitterMs: 30_000, isDeclared: false, isPaused: false },
      ...{ nextAt: at('26T02:00'), ticked: 0, skipped: 0, missed: 0 },
      ...{ createdAt: new Date(startAt), updatedAt: new Date(startAt) },
    })
    expect(await mill.schedules.get('nightly')).toEqual((await mill.schedules.list()).schedules[0])
    expect(await mill.schedules.get('other')).toBeUndefined()
  })

  it('is listed with the others by name, in pages', async () => {
    const { mill } = scene()
    for (const name of ['c', 'a', 'b']) await mill.schedules.set(name, { every: '1h', task: sync })
    const first = await mill.schedules.list({ limit: 2 })
    expect(first.schedules.map(({ name }) => name)).toEqual(['a', 'b'])
    const rest = await mill.schedules.list({ limit: 2, cursor: first.cursor! })
    expect(rest.schedules.map(({ name }) => name)).toEqual(['c'])
    expect(rest.cursor).toBeUndefined()
    await expect(mill.schedules.list({ limit: 0 })).rejects.toThrow(InvalidArgumentError)
  })

  it('keeps its next tick when it is set again with the same times', async () => {
    const { mill, clock } = scene()
    await mill.schedules.set('s', { every: '1h', task: report, input: kind })
    clock.advance(2 * 3_600_000)
    const late = await mill.schedules.set('s', { every: '1h', task: report, input: { kind: 'hourly' } })
    expect([late.input, late.nextAt]).toEqual([{ kind: 'hourly' }, at('25T11:00')])
    const other = await mill.schedules.set('s', { every: '2h', task: report, input: kind })
    expect(other.nextAt).toEqual(at('25T14:00'))
  })

  it('has its input and its options checked like those of a job', async () => {
    const { mill } = scene()
    await expect(mill.schedules.set('s', { every: '1h', task: report, input: {} as typeof kind })).rejects.toThrow(
      InvalidJobError,
    )
    const enqueue = { prio: 1 } as object
    await expect(mill.schedules.set('s', { every: '1h', task: sync, enqueue })).rejects.toThrow(
      /'prio' is not an option/,
    )
    const late = { every: '1h', task: sync, jitter: '10m', enqueue: { expiresIn: '5m' } } as const
    await expect(mill.schedules.set('s', late)).rejects.toThrow(
      /schedule 's': expiresIn \(300000 ms\) must be longer than delay and jitter/,
    )
    expect((await mill.schedules.list()).schedules).toEqual([])
  })

  it.each([
    [{ every: '500ms' }, /every: must be at least 1000 ms; got "500ms"/],
    [{ cron: '0 3 32 * *' }, /cron: has '32' as its day of month, at character 5: .*; got "0 3 32 \* \*"/],
    [{ cron: '30 2 31 2 *' }, /cron: names a date that never comes/],
    [{ cron: '@daily', timeZone: 'Europe/Zürich' }, /timeZone: must be .*; did you mean 'Europe\/Zurich'\?; got/],
    [{ cron: '@daily', timeZone: 'europe/zurych' }, /did you mean 'Europe\/Zurich'\?/],
    [{ cron: '@daily', timeZone: '+01:00' }, /timeZone: must be the name of a time zone/],
    [{ cron: '@daily', every: '1h' }, /must have `cron` or `every`, and not both/],
    [{}, /must have `cron` or `every`, and not both/],
    [{ every: '1h', timeZone: 'UTC' }, /must not have `timeZone` with `every`/],
    [{ every: '1h', from: 'tomorrow' }, /from: must be a valid Date or ISO-8601 text with a zone/],
    [{ every: '1h', from: '2030-01-01T00:00Z', until: '2029-01-01T00:00Z' }, /must have a `from` before its `until`/],
    [{ every: '1h', jitter: '2d' }, /jitter: must be at most 1d/],
    [{ every: '1h', onMissed: 'none' }, /onMissed: must be 'skip', 'latest' or 'all'/],
    [{ every: '1h', enqueue: { runAt: new Date() } }, /must not have `enqueue.runAt`/],
    [{ every: '1h', enqueue: { id: 'x' } }, /must not have `enqueue.id`/],
    [{ every: '1h', enqueue: { ifWaiting: 'replace' } }, /must not have `enqueue.ifWaiting`/],
    [{ every: '1h', retries: 1 }, /retries: is not an option/],
    [{ every: '1h', task: undefined }, /task: must be a task/],
  ])('is refused as %o', async (options, message) => {
    const { mill } = scene()
    const set = mill.schedules.set('s', { task: sync, ...options } as never)
    await expect(set).rejects.toThrow(message)
    await expect(set).rejects.toThrow(ConfigError)
  })

  it('is refused if its name is invalid or declared in the configuration', async () => {
    const { mill } = scene({ nightly })
    await expect(mill.schedules.set('a b', { every: '1h', task: sync })).rejects.toThrow(/name must be 1 to 80/)
    await expect(mill.schedules.set('nightly', { every: '1h', task: sync })).rejects.toThrow(
      /declared in the configuration/,
    )
  })

  it('is paused until it is resumed, and does not catch up on its pause', async () => {
    const { mill, clock } = scene()
    await mill.schedules.set('s', { every: '1h', task: sync })
    await mill.schedules.pause('s')
    clock.advance(10 * 3_600_000)
    const set = await mill.schedules.set('s', { every: '1h', task: sync, overlap: 'skip' })
    expect([set.isPaused, set.nextAt]).toEqual([true, undefined])
    await mill.schedules.resume('s')
    const resumed = await mill.schedules.get('s')
    expect([resumed?.isPaused, resumed?.nextAt, resumed?.missed]).toEqual([false, at('25T21:00'), 0])
    await expect(mill.schedules.pause('other')).rejects.toThrow(/there is no schedule 'other'; there are 's'\./)
  })

  it('is removed only once', async () => {
    const { mill } = scene()
    await mill.schedules.set('s', { every: '1h', task: sync })
    expect([await mill.schedules.remove('s'), await mill.schedules.remove('s')]).toEqual([true, false])
  })

  it('lists its next ticks, from `from` to `until`', async () => {
    const { mill } = scene()
    await mill.schedules.set('s', { every: '1h', task: sync, from: at('25T12:30'), until: at('25T14:30') })
    expect(await mill.schedules.next('s', 9)).toEqual([at('25T12:30'), at('25T13:30'), at('25T14:30')])
    await expect(mill.schedules.next('s', 0)).rejects.toThrow(InvalidArgumentError)
  })

  it('runs at once on request even if it is paused, and keeps its next tick', async () => {
    const { mill } = scene(undefined, { queues: { syncs: { maxPending: 2 } } })
    await mill.schedules.set('s', { every: '1h', task: sync })
    const job = await mill.schedules.runNow('s')
    expect(job.id).toMatch(/^s@run-[0-9A-Z]{26}$/)
    expect(await mill.queue('syncs').jobs.get(job.id)).toMatchObject({ task: 'sync', queue: 'syncs', state: 'ready' })
    expect(await mill.schedules.get('s')).toMatchObject({ nextAt: at('25T11:00'), ticked: 1, lastId: job.id })
    await mill.schedules.pause('s')
    expect((await mill.schedules.runNow('s')).outcome).toBe('added')
    await expect(mill.schedules.runNow('s')).rejects.toMatchObject({ code: 'queue-full' })
  })

  it('for an ordered task has the id of its input', async () => {
    const { mill } = scene()
    await mill.schedules.set('s', { every: '1h', task: order, input: { id: 'o-1' } })
    expect([(await mill.schedules.runNow('s')).id, (await mill.schedules.runNow('s')).outcome]).toEqual([
      'o-1',
      'merged',
    ])
  })

  it('is refused when the mill is created if the store has no schedules', () => {
    const schedules = { s: { every: '1h', task: sync } } as const
    const declared = () => millrace({ store: 'sqs://us-east-1', tasks: [sync], schedules })
    expect(declared).toThrow(UnsupportedByStoreError)
    expect(declared).toThrow(/the sqs store cannot do this: schedule 's'\. Give them to a second mill/)
  })
})

describe('declared schedules', () => {
  it('of another service in the same store are left alone, and reported once', async () => {
    const { again } = scene()
    const crm = again({ daily: { every: '1h', task: sync } }, { schedulesOf: 'crm' })
    await again({ nightly, weekly: nightly }, { schedulesOf: 'billing' }).schedules.reconcile()
    const told = recorded(crm, 'schedule.foreign')
    for (let i = 0; i < 2; i += 1) await crm.schedules.reconcile()
    expect(told).toEqual([{ declaredBy: 'billing', schedules: ['nightly', 'weekly'], by: 'crm' }])
    const next = again({ nightly }, { schedulesOf: 'billing' })
    expect(await next.schedules.reconcile()).toEqual([{ schedule: 'weekly', change: 'removed' }])
    const { schedules } = await crm.schedules.list()
    expect(schedules.map(({ name, declaredBy }) => [name, declaredBy])).toEqual([
      ['daily', 'crm'],
      ['nightly', 'billing'],
    ])
  })

  it('with one name in two configurations belong to the one that starts last, which says from whom it took them', async () => {
    const { again } = scene({}, { schedulesOf: 'crm' })
    const billing = again({ nightly }, { schedulesOf: 'billing' })
    const renamed = again({ nightly }, { schedulesOf: 'invoices' })
    await billing.schedules.reconcile()
    const taken = [{ schedule: 'nightly', change: 'changed', takenFrom: 'billing' }]
    expect(await renamed.schedules.reconcile()).toEqual(taken)
    expect(await renamed.schedules.reconcile()).toEqual([])
  })

  it('belong to the project unless the configuration has a name of its own', async () => {
    const { mill } = scene({ nightly })
    await mill.schedules.reconcile()
    expect(await mill.schedules.get('nightly')).toMatchObject({ isDeclared: true, declaredBy: 'millrace' })
    expect(() => scene({ nightly }, { schedulesOf: '' })).toThrow(/schedulesOf: must be a name of 1 to 256 characters/)
  })

  it('are added, changed and removed as in the code; schedules set at run time are left alone', async () => {
    const { mill, again } = scene({ nightly, old: { every: '1h', task: sync } })
    await mill.schedules.set('tenant', { every: '1h', task: sync })
    const told = recorded(mill, 'schedule.reconciled')
    expect(await mill.schedules.reconcile()).toEqual(told)
    expect(told).toEqual([
      { schedule: 'nightly', change: 'added' },
      { schedule: 'old', change: 'added' },
    ])
    expect(await mill.schedules.reconcile()).toEqual([])

    const next = again({ nightly: { ...nightly, input: { kind: 'weekly' } }, renamed: { every: '1h', task: sync } })
    expect(await next.schedules.reconcile()).toEqual([
      { schedule: 'nightly', change: 'changed' },
      { schedule: 'renamed', change: 'added' },
      { schedule: 'old', change: 'removed' },
    ])
    const { schedules } = await mill.schedules.list()
    expect(schedules.map(({ name, input }) => [name, input])).toEqual([
      ['nightly', { kind: 'weekly' }],
      ['renamed', undefined],
      ['tenant', undefined],
    ])
  })

  it('can run and be predicted before a worker has written them, and that writes nothing', async () => {
    const seal = { current: 'k', keys: { k: Buffer.alloc(32, 7).toString('base64') } }
    const declared = { nightly, o: { every: '1h', task: order, input: { id: 'o-1' } } } as const
    const { mill, again } = scene(declared, { seal, queues: { default: { maxPending: 1 } } })
    const enqueued = recorded(mill, 'job.enqueued')
    const job = await mill.schedules.runNow('nightly')
    expect(job.id).toMatch(/^nightly@run-[0-9A-Z]{26}$/)
    expect(await mill.queue('default').jobs.get(job.id)).toMatchObject({ input: kind, state: 'ready' })
    expect([(await mill.schedules.runNow('o')).id, (await mill.schedules.runNow('o')).outcome]).toEqual([
      'o-1',
      'merged',
    ])
    await expect(mill.schedules.runNow('nightly')).rejects.toMatchObject({ code: 'queue-full' })
    expect(enqueued.map(({ id, outcome }) => [id, outcome])).toEqual([
      [job.id, 'added'],
      ['o-1', 'added'],
      ['o-1', 'merged'],
    ])
    expect(await mill.schedules.next('nightly')).toEqual([at('26T02:00')])
    expect((await mill.schedules.list()).schedules).toEqual([])
    await expect(again({}).schedules.runNow('nightly')).rejects.toThrow(/there is no schedule 'nightly'/)
  })

  it('that newer code has removed are not restored by an older process that runs them', async () => {
    const { mill, again } = scene({ nightly })
    await mill.schedules.reconcile()
    await again({}).schedules.reconcile()
    expect((await mill.schedules.runNow('nightly')).outcome).toBe('added')
    expect(await mill.schedules.get('nightly')).toBeUndefined()
  })

  it('keep their pause and their history if the code changes', async () => {
    const { mill, again } = scene({ nightly })
    await mill.schedules.reconcile()
    await mill.schedules.runNow('nightly')
    await mill.schedules.pause('nightly')
    await again({ nightly: { ...nightly, cron: '0 4 * * *' } }).schedules.reconcile()
    expect(await mill.schedules.get('nightly')).toMatchObject({ cron: '0 4 * * *', isPaused: true, ticked: 1 })
  })

  it('with sealed jobs stay unchanged as long as the code does, and each job is sealed separately', async () => {
    const seal = { current: 'k', keys: { k: Buffer.alloc(32, 7).toString('base64') } }
    const schedules = {
      nightly: { ...nightly, enqueue: { meta: { by: 'me' } } },
      o: { every: '1h', task: order, input: { id: 'o-1' } },
    } as const
    const { mill, again } = scene(schedules, { seal })
    expect(await mill.schedules.reconcile()).toHaveLength(2)
    expect(await again(schedules).schedules.reconcile()).toEqual([])
    expect(await mill.schedules.get('nightly')).toMatchObject({ input: kind, meta: { by: 'me' } })
    const { id } = await mill.schedules.runNow('nightly')
    expect(await mill.queue('default').jobs.get(id)).toMatchObject({ input: kind, meta: { by: 'me' } })
    await mill.schedules.runNow('o')
    expect((await mill.queue('order').jobs.get('o-1'))?.payloads).toMatchObject([{ input: { id: 'o-1' } }])
  })

  it('are sealed anew when the key changes, with the one that is set at run time, and keep their next tick', async () => {
    const [old, next] = [7, 8].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string]
    const schedules = {
      nightly: { ...nightly, enqueue: { meta: { by: 'me' } } },
      o: { every: '1h', task: order, input: { id: 'o-1' } },
    } as const
    const plain = scene(schedules)
    await plain.mill.schedules.reconcile()
    await plain.mill.schedules.set('tenant', { every: '1h', task: report, input: kind })
    const nextAt = (await plain.mill.schedules.get('tenant'))!.nextAt
    const seals = [
      { current: 'a', keys: { a: old } },
      { current: 'b', keys: { a: old, b: next } },
    ]
    for (const seal of seals) {
      const mill = plain.again(schedules, { seal })
      expect(await mill.schedules.reconcile()).toEqual([
        { schedule: 'nightly', change: 'changed' },
        { schedule: 'o', change: 'changed' },
      ])
      expect(await mill.schedules.reconcile()).toEqual([])
      await mill.schedules.set('tenant', { every: '1h', task: report, input: kind })
    }
    const mill = plain.again(schedules, { seal: { current: 'b', keys: { b: next }, only: true } })
    for (const name of ['nightly', 'tenant', 'o']) expect((await mill.schedules.runNow(name)).outcome).toBe('added')
    expect(await mill.schedules.get('nightly')).toMatchObject({ input: kind, meta: { by: 'me' } })
    expect(await mill.schedules.get('tenant')).toMatchObject({ input: kind, nextAt })
  })

  it('stay if a mill declares no `schedules` at all', async () => {
    const { mill, again } = scene({ nightly })
    await mill.schedules.reconcile()
    expect(await again().schedules.reconcile()).toEqual([])
    expect(await mill.schedules.get('nightly')).toBeDefined()
    expect(await again({}).schedules.reconcile()).toEqual([{ schedule: 'nightly', change: 'removed' }])
  })

  it('are written when a worker starts, and a wrong input makes the start fail', async () => {
    const { again, mill } = scene()
    const worker = again({ nightly }).worker()
    await worker.start()
    expect(await mill.schedules.get('nightly')).toMatchObject({ isDeclared: true })
    await worker.stop()
    const schedules = {
      nightly: { ...nightly, task: slow, input: { kind: 'none' } },
      sync: { every: '1h', task: sync },
    } as const
    await expect(again(schedules).worker().start()).rejects.toThrow(/^schedule 'nightly': the input of a job of task/)
    expect(await mill.schedules.get('sync')).toBeUndefined()
  })

  it('are named by an error if others change them at each try', async () => {
    const store = new MemoryStore(new ManualClock(startAt))
    store.schedules.put = async () => false
    const mill = testMillOn(store, { tasks: [report], schedules: { nightly } })
    await expect(mill.schedules.reconcile()).rejects.toThrow(/^schedule 'nightly' is changed by others again and again/)
  })

  it('are refused by name when the mill is created if their jobs could not be enqueued', () => {
    const schedules = {
      fine: nightly,
      nightly: { ...nightly, input: {} },
      group: { every: '1h', task: sync, enqueue: { prio: 1 } as object },
      late: { every: '1h', task: sync, jitter: '10m', enqueue: { expiresIn: '5m' } },
    } as never
    expect(() => scene(schedules)).toThrow(
      /schedules\.nightly: the input of a job of task 'report' does not match[\s\S]*schedules\.group: .*'prio' is not an option[\s\S]*schedules\.late: expiresIn/,
    )
    expect(() => scene(schedules)).not.toThrow(/schedules\.fine/)
  })

  it('are refused with every mistake when the mill is created', () => {
    const strange = defineTask({ name: 'strange' })
    const schedules = {
      a: { cron: '61 * * * *', task: sync },
      b: { every: '1h', task: sync, overlap: 'never' },
    } as never
    expect(() => scene(schedules)).toThrow(/schedules\.a\.cron: has '61'[\s\S]*schedules\.b\.overlap: must be 'allow'/)
    expect(() => scene({ c: { every: '1h', task: strange } })).toThrow(/schedules\.c\.task: is the task 'strange'/)
    expect(() => scene({ c: { every: '1h', task: strange } }, { tasksElsewhere: ['strange'] })).not.toThrow()
  })
})
