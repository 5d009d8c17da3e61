/** The lead of the schedules, on every store that is here without a server. */

import { defineTask, jsonCodec, type ScheduleOptions } from 'millrace'
import type { Store } from 'millrace/store'
import { memoryHarness, type StoreHarness } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CodecError, StoreUnavailableError } from '#src/core/errors.js'
import { type EventMap, Events } from '#src/core/events.js'
import { Packing } from '#src/core/packing/packing.js'
import { Seal } from '#src/core/packing/seal.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { ScheduleLead } from '#src/workers/schedule-loop.js'
import { givenSurroundings } from '../runtime/given-surroundings.js'
import { testMillOn } from '../test-mill.js'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Where the clocks of harnesses start: midnight. */
const midnight = Date.parse('2024-01-01T00:00:00Z')
const task = defineTask({ name: 'report', queue: 'reports' })
const nightly = { cron: '0 3 * * *', task } as const

let lastId = 0
const newId = () => `id-${++lastId}`

interface Watched {
  readonly ticked: EventMap['schedule.ticked'][]
  readonly missed: EventMap['schedule.missed'][]
  readonly skipped: EventMap['schedule.skipped'][]
  readonly refused: EventMap['schedule.refused'][]
}

function leadOn({ schedules }: Store, worker: string, mono = () => 0, packing = new Packing(jsonCodec)) {
  const events = new Events()
  const told: Watched = { ticked: [], missed: [], skipped: [], refused: [] }
  events.on('schedule.ticked', (event) => told.ticked.push(event))
  events.on('schedule.missed', (event) => told.missed.push(event))
  events.on('schedule.skipped', (event) => told.skipped.push(event))
  events.on('schedule.refused', (event) => told.refused.push(event))
  return { told, lead: new ScheduleLead(givenSurroundings({ worker, packing, events, newId, mono }), schedules!) }
}

async function scene(
  makeHarness: () => Promise<StoreHarness>,
  schedules: Record<string, ScheduleOptions>,
  maxPending = 2_000,
) {
  const harness = await makeHarness()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  const mill = testMillOn(await harness.open(), { tasks: [task], queues: { reports: { maxPending } } })
  for (const [name, options] of Object.entries(schedules)) await mill.schedules.set(name, options)
  let mono = 0
  const { lead, told } = leadOn(store, 'worker-1', () => mono)
  const advance = async (ms: number) => {
    mono += ms
    await harness.advance(ms)
  }
  return { harness, store, mill, lead, told, advance }
}

describe.each([
  ['memory', memoryHarness],
  ['sqlite', sqliteHarness],
] as const)('the lead of the schedules on %s', (_, makeHarness) => {
  it('enqueues a tick at its instant, and looks again at the next', async () => {
    const { lead, told, mill, advance } = await scene(makeHarness, { nightly: { ...nightly, cron: '0 0,3 * * *' } })
    await advance(3 * hourMs - 4_000)
    expect(await lead.look()).toMatchObject({ isLead: true, forMs: 4_000 })
    await advance(4_000)
    expect(await lead.look()).toMatchObject({ isLead: true, forMs: 5_000 })
    const id = 'nightly@2024-01-01T03:00:00Z'
    const tickAt = midnight + 3 * hourMs
    expect(told.ticked).toEqual([
      { schedule: 'nightly', queue: 'reports', id, task: 'report', tickAt, lateMs: 0, outcome: 'added' },
    ])
    expect((await mill.queue('reports').jobs.list()).jobs.map((job) => job.id)).toEqual([id])
    expect((await lead.look()).forMs).toBe(5_000)
    expect(told.ticked.length).toBe(1)
  })

  it('looks at once for the tick after the one it has just enqueued', async () => {
    const { lead, advance } = await scene(makeHarness, { often: { every: '2s', task } })
    await advance(2_500)
    expect((await lead.look()).forMs).toBe(1_500)
  })

  it.each([
    ['skip', 0, 3],
    ['latest', 1, 2],
    ['all', 3, 0],
  ] as const)(
    'after three days of downtime and onMissed %s enqueues %i and leaves %i out',
    async (onMissed, enqueued, leftOut) => {
      const { lead, told, mill, advance } = await scene(makeHarness, { nightly: { ...nightly, onMissed } })
      await advance(3 * dayMs)
      await lead.look()
      const tickAt = midnight + 3 * hourMs
      expect(told.missed).toEqual([
        { schedule: 'nightly', queue: 'reports', tickAt, enqueued, leftOut, reason: 'late' },
      ])
      expect(told.ticked.map(({ id }) => id)).toEqual(
        ['01', '02', '03'].slice(3 - enqueued).map((day) => `nightly@2024-01-${day}T03:00:00Z`),
      )
      expect(await mill.schedules.get('nightly')).toMatchObject({
        ...{
          ticked: enqueued,
          missed: leftOut,
          lastAt: new Date(tickAt + 2 * dayMs),
          nextAt: new Date(tickAt + 3 * dayMs),
        },
      })
    },
  )

  it('catches up on at most the last thousand ticks, in steps of a hundred', async () => {
    const { lead, told, mill, advance } = await scene(makeHarness, { often: { every: '1m', task, onMissed: 'all' } })
    await advance(3 * dayMs)
    await lead.look()
    expect(told.missed).toMatchObject([{ enqueued: 1_000, leftOut: 1_000 }])
    expect((await mill.queue('reports').depth()).ready).toBe(1_000)
    expect(told.ticked[0]).toMatchObject({ tickAt: midnight + 3 * dayMs - 999 * 60_000 })
    expect(told.ticked.at(-1)).toMatchObject({ tickAt: midnight + 3 * dayMs })
  })

  it('skips a tick while the job of the previous one is there', async () => {
    const { lead, told, mill, advance, store } = await scene(makeHarness, { s: { every: '1h', task, overlap: 'skip' } })
    for (let hour = 0; hour < 3; hour += 1) {
      await advance(hourMs)
      await lead.look()
    }
    expect(told.ticked.length).toBe(1)
    const [{ id: lastId }] = told.ticked as [EventMap['schedule.ticked']]
    expect(told.skipped).toEqual(
      [2, 3].map((hour) => ({ schedule: 's', queue: 'reports', tickAt: midnight + hour * hourMs, lastId, ticks: 1 })),
    )
    const { claims } = await store.claim([{ queue: 'reports', limit: 1 }], { worker: 'w', leaseMs: hourMs })
    await store.settle([{ ...claims[0]!, kind: 'complete' }])
    await advance(hourMs)
    await lead.look()
    expect(told.ticked.length).toBe(2)
    expect(await mill.schedules.get('s')).toMatchObject({ ticked: 2, skipped: 2, missed: 0 })
  })

  it('counts no tick as enqueued that it has skipped, if ticks were missed', async () => {
    const { lead, told, advance } = await scene(makeHarness, { s: { every: '1h', task, overlap: 'skip' } })
    await advance(hourMs)
    await lead.look()
    await advance(3 * hourMs)
    await lead.look()
    expect(told.skipped).toMatchObject([{ ticks: 1, tickAt: midnight + 4 * hourMs }])
    expect(told.missed).toMatchObject([{ enqueued: 0, leftOut: 2, tickAt: midnight + 2 * hourMs }])
  })

  it('reports the last tick it skipped, even if it enqueues the one after in the same look', async () => {
    const { lead, told, advance } = await scene(makeHarness, { s: { every: '1s', task, overlap: 'skip' } })
    await advance(4_000)
    await lead.look()
    expect(told.ticked.map(({ tickAt }) => tickAt)).toEqual([midnight + 4_000])
    expect(told.skipped).toMatchObject([{ tickAt: midnight + 3_000, ticks: 3 }])
    await advance(4_000)
    await lead.look()
    expect(told.skipped.slice(1)).toMatchObject([{ tickAt: midnight + 8_000, ticks: 4 }])
  })

  it('tries again later if the queue is full or drains, reports it, and loses nothing', async () => {
    const { lead, told, mill, advance } = await scene(makeHarness, { s: { every: '1h', task } })
    await mill.queue('reports').drain()
    await advance(hourMs)
    expect((await lead.look()).forMs).toBe(1_000)
    expect((await lead.look()).forMs).toBe(1_000)
    await advance(1_000)
    expect((await lead.look()).forMs).toBe(2_000)
    const tickAt = midnight + hourMs
    expect(told.refused).toEqual(
      [1_000, 2_000].map((retryMs) => ({
        schedule: 's',
        queue: 'reports',
        tickAt,
        reason: 'draining',
        error: undefined,
        retryMs,
      })),
    )
    await mill.queue('reports').resume()
    await advance(2_000)
    await lead.look()
    expect(told.ticked).toMatchObject([{ tickAt, lateMs: 3_000 }])
  })

  it('catches up on more ticks than its queue holds, as many at a time as there is room for', async () => {
    const missed = { s: { every: '1h', task, onMissed: 'all' } } as const
    const { lead, told, advance, store } = await scene(makeHarness, missed, 3)
    await advance(8 * hourMs)
    const made: number[] = []
    for (let looks = 0; looks < 40 && made.length < 8; looks += 1) {
      await lead.look()
      const { claims } = await store.claim([{ queue: 'reports', limit: 3 }], { worker: 'w', leaseMs: hourMs })
      await store.settle(claims.map((claim) => ({ ...claim, kind: 'complete' })))
      made.push(...told.ticked.slice(made.length).map(({ tickAt }) => (tickAt - midnight) / hourMs))
      await advance(1_000)
    }
    expect(made).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('reports each missed tick once, even if its queue takes them little by little', async () => {
    const missed = { s: { every: '1m', task, onMissed: 'all' } } as const
    const { lead, told, mill, advance } = await scene(makeHarness, missed, 250)
    await advance(1_500 * 60_000)
    await lead.look()
    expect(told.missed).toMatchObject([{ enqueued: 200, leftOut: 500, tickAt: midnight + 60_000 }])
    for (let looks = 0; looks < 9 && told.ticked.length < 250; looks += 1) await lead.look()
    expect(told.missed.reduce((sum, { enqueued }) => sum + enqueued, 0)).toBe(250)
    expect(told.missed.reduce((sum, { leftOut }) => sum + leftOut, 0)).toBe(500)
    expect(await mill.schedules.get('s')).toMatchObject({ ticked: 250, missed: 500 })
  })

  it('delays each job by its jitter, which is the same for every worker', async () => {
    const { lead, mill, advance } = await scene(makeHarness, { s: { every: '1h', task, jitter: '10m' } })
    await advance(hourMs)
    await lead.look()
    const { jobs } = await mill.queue('reports').jobs.list()
    const delayMs = jobs[0]!.runAt.getTime() - (midnight + hourMs)
    expect(delayMs).toBeGreaterThan(0)
    expect(delayMs).toBeLessThan(600_000)
    expect(jobs[0]!.state).toBe('scheduled')
  })

  it('is one of several workers, and replaced when it is silent', async () => {
    const { lead, told, advance, harness } = await scene(makeHarness, { s: { every: '1h', task } })
    const other = leadOn(await harness.open(), 'worker-2')
    expect((await lead.look()).isLead).toBe(true)
    expect(await other.lead.look()).toMatchObject({ isLead: false, forMs: 15_000 })
    await advance(hourMs)
    expect((await other.lead.look()).isLead).toBe(true)
    expect(await lead.look()).toMatchObject({ isLead: false, forMs: 15_000 })
    expect([told.ticked.length, other.told.ticked.length]).toEqual([0, 1])
  })

  it('enqueues each tick once even if two workers believe they lead', async () => {
    const { store, advance, harness, mill } = await scene(makeHarness, { s: { every: '1m', task } })
    const believers = [store, await harness.open()].map((one, i) => {
      const schedules = {
        ...methodsOf(one),
        due: (_: string, ...rest: [number, number]) => one.schedules!.due('both', ...rest),
      }
      return leadOn({ ...one, schedules } as Store, `worker-${i}`)
    })
    for (let minute = 0; minute < 20; minute += 1) {
      await advance(60_000)
      await Promise.all(believers.map(({ lead }) => lead.look()))
    }
    const ticked = believers.flatMap(({ told }) => told.ticked.map(({ tickAt }) => tickAt)).sort()
    expect(ticked).toEqual(Array.from({ length: 20 }, (_, i) => midnight + (i + 1) * 60_000))
    expect((await mill.queue('reports').depth()).ready).toBe(20)
  })

  it('continues from now if the clock was far ahead and was set back', async () => {
    const { lead, told, advance, harness, mill } = await scene(makeHarness, { s: { every: '1h', task } })
    await lead.look()
    await harness.step(365 * dayMs)
    await lead.look()
    await harness.step(-365 * dayMs)
    await lead.look()
    expect(await mill.schedules.get('s')).toMatchObject({ nextAt: new Date(midnight + hourMs) })
    await advance(hourMs)
    await lead.look()
    expect(told.ticked.at(-1)).toMatchObject({ tickAt: midnight + hourMs })
  })

  it('starts from now with a schedule that was written while the clock was far ahead', async () => {
    const { lead, told, advance, harness, mill } = await scene(makeHarness, {})
    await harness.step(365 * dayMs)
    await mill.schedules.set('s', { every: '1h', task })
    await harness.step(-365 * dayMs)
    await lead.look()
    expect(await mill.schedules.get('s')).toMatchObject({ nextAt: new Date(midnight + hourMs) })
    await advance(hourMs)
    await lead.look()
    expect(told.ticked).toMatchObject([{ tickAt: midnight + hourMs }])
  })

  it('repeats no tick if the clock is set back by seconds', async () => {
    const { lead, told, advance, harness } = await scene(makeHarness, { s: { every: '1h', task } })
    await advance(hourMs)
    await lead.look()
    await harness.step(-5_000)
    await lead.look()
    await advance(5_000)
    await lead.look()
    expect(told.ticked.length).toBe(1)
  })

  it('does not set back a schedule that advanced while it stood still', async () => {
    const { store, lead, told, advance } = await scene(makeHarness, { s: { every: '1m', task, onMissed: 'all' } })
    await advance(60_000)
    await lead.look()
    await advance(20_000)
    let isStill = true
    // It has just become the lead, and stands still before it reads what there is.
    const list = async (...page: [string | undefined, number]) => {
      if (isStill) {
        isStill = false
        for (let minute = 0; minute < 4; minute += 1) {
          await advance(60_000)
          await lead.look()
        }
        await advance(20_000)
      }
      return store.schedules!.list(...page)
    }
    const late = leadOn({ ...store, schedules: { ...methodsOf(store), list } } as Store, 'late')
    await late.lead.look()
    await advance(20_000)
    await late.lead.look()
    await lead.look()
    const ticks = [...told.ticked, ...late.told.ticked].map(({ tickAt }) => tickAt)
    expect(isStill).toBe(false)
    expect(new Set(ticks).size).toBe(ticks.length)
  })

  it('ticks the schedules it can reach even if it cannot list all of them', async () => {
    const { store, advance } = await scene(makeHarness, { s: { every: '1h', task } })
    const list = () => Promise.reject(new StoreUnavailableError('one of several servers is away.'))
    const { lead, told } = leadOn({ ...store, schedules: { ...methodsOf(store), list } } as Store, 'worker-1')
    await advance(hourMs)
    await lead.look()
    expect(told.ticked.length).toBe(1)
  })

  it('skips unreadable schedules, reports them, and ticks the others', async () => {
    const { store, advance } = await scene(makeHarness, { s: { every: '1h', task }, other: { every: '1h', task } })
    const { schedules } = store
    const stored = (await schedules!.get('s'))!
    const job = { ...stored.definition.job, codec: 'json+sealed' }
    await schedules!.put({ ...stored, definition: { ...stored.definition, job }, revision: 'sealed' }, stored)
    const { lead, told } = leadOn(store, 'worker-1')
    await advance(hourMs)
    await lead.look()
    expect(told.ticked.map(({ schedule }) => schedule)).toEqual(['other'])
    expect(told.refused).toMatchObject([{ schedule: 's', reason: 'failed', error: expect.any(CodecError) }])
  })

  it('lets others lead at times while it lacks the key of a due schedule, and delays no tick', async () => {
    const { harness, lead, told, advance } = await scene(makeHarness, { often: { every: '5s', task } })
    const seal = { current: 'a', keys: { a: Buffer.alloc(32, 1) } }
    const sealing = testMillOn(await harness.open(), { tasks: [task], queues: { reports: {} }, seal })
    await sealing.schedules.set('secret', { every: '1h', task })
    const keys = new Seal({ current: 'a', only: false, keys: new Map([['a', seal.keys.a]]) }, 'millrace')
    const holder = leadOn(await harness.open(), 'worker-2', () => 0, new Packing(jsonCodec, undefined, keys))
    const looks = async (times: number) => {
      for (; times > 0; times -= 1) {
        await advance(5_000)
        expect((await lead.look()).isLead).toBe(true)
      }
    }
    await advance(hourMs - 5_000)
    await looks(3)
    expect(told.ticked.slice(1).map(({ schedule, lateMs }) => [schedule, lateMs])).toEqual([
      ['often', 0],
      ['often', 0],
    ])
    expect(await holder.lead.look()).toMatchObject({ isLead: true, forMs: 5_000 })
    expect(holder.told.ticked).toMatchObject([{ schedule: 'secret', lateMs: 10_000 }])

    await advance(15_000)
    await sealing.schedules.set('secret', { every: '1m', task })
    await advance(60_000)
    await looks(1)
    expect(told.refused.at(-1)).toMatchObject({ schedule: 'secret', reason: 'failed' })
    const other = leadOn(await harness.open(), 'worker-3')
    await looks(3)
    expect((await other.lead.look()).isLead).toBe(false)
  })
})

/** Its verbs as functions, of which some may be replaced. */
function methodsOf({ schedules }: Store): NonNullable<Store['schedules']> {
  const of = schedules!
  return {
    put: (...args) => of.put(...args),
    remove: (...args) => of.remove(...args),
    get: (name) => of.get(name),
    list: (...args) => of.list(...args),
    tick: (tick) => of.tick(tick),
    due: (...args) => of.due(...args),
    resign: (worker) => of.resign(worker),
    changed: (...args) => of.changed(...args),
  }
}
