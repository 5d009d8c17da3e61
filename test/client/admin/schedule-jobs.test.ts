/** The jobs of schedules: what they know of their tick, and what becomes of those that wait. */

import { defineOrderedTask, defineTask, type MillOptions } from 'millrace'
import { memoryHarness } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Events } from '#src/core/events.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { ScheduleLead } from '#src/workers/schedule-loop.js'
import { nextEvent, recorded } from '../../next-event.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

const task = defineTask({ name: 'report', run: (_: unknown, { job }) => ({ schedule: job.schedule, meta: job.meta }) })
const order = defineOrderedTask({ name: 'order', id: () => 'o-1', run: (_, { job }) => void job })

describe.each(storeKinds)('the job of a schedule on %s', (kind) => {
  const seal = { current: 'k', keys: { k: Buffer.alloc(32, 7).toString('base64') } }

  it.each([{}, { seal }])('carries its schedule and the instant of its tick %#', async (options) => {
    const mill = testMill({ tasks: [task], ...options }, kind)
    await mill.worker().start()
    const ticked = nextEvent(mill, 'schedule.ticked')
    await mill.schedules.set('often', { every: '1s', task, enqueue: { meta: { by: 'me' } } })
    const { id, tickAt } = await ticked
    const schedule = { name: 'often', tickAt: new Date(tickAt) }
    const made = await mill.job(task, id).result({ timeout: '10s' })
    expect(made).toEqual({ schedule, meta: { by: 'me' } })
    expect(await mill.queue('default').jobs.get(id)).toMatchObject({ schedule, meta: { by: 'me' } })
    expect((await mill.schedules.get('often'))?.meta).toEqual({ by: 'me' })
  })

  it('carries the instant of the request if it was run by hand', async () => {
    const mill = testMill({ tasks: [task] }, kind)
    await mill.schedules.set('s', { cron: '@yearly', task })
    const { id } = await mill.schedules.runNow('s')
    const record = await mill.queue('default').jobs.get(id)
    expect(record?.schedule).toEqual({ name: 's', tickAt: record?.createdAt })
    expect(record?.meta).toBeUndefined()
    expect((await mill.schedules.get('s'))?.meta).toBeUndefined()
  })

  it("is not confused with a user's job of the same name", async () => {
    const mill = testMill({ tasks: [task] }, kind)
    await mill.schedules.set('s', { every: '1h', task })
    const { id } = await mill.enqueue(task, undefined, { id: 's@2026-11-25T10:00:00Z' })
    expect((await mill.queue('default').jobs.get(id))?.schedule).toBeUndefined()
    expect(await mill.schedules.clear('s')).toBe(0)
    expect(await mill.queue('default').jobs.get(id)).toBeDefined()
  })
})

const startAt = Date.parse('2026-11-25T10:00:00Z')

async function scene(makeHarness: typeof memoryHarness, options: Partial<MillOptions> = {}) {
  const harness = await makeHarness({ startAt })
  onTestFinished(() => harness.close())
  const store = await harness.open()
  const mill = testMillOn(await harness.open(), { tasks: [task, order], ...options })
  const events = new Events()
  let made = 0
  const lead = new ScheduleLead(givenSurroundings({ events, newId: () => `lead-${++made}` }), store.schedules!)
  const jobs = async (queue = 'default') => (await mill.queue(queue).jobs.list({ by: 'id', limit: 200 })).jobs
  const ids = async () => (await jobs()).map(({ id }) => id.replace('2026-11-25T', ''))
  return { harness, store, mill, lead, ids, jobs }
}

describe.each([
  ['memory', memoryHarness],
  ['sqlite', sqliteHarness],
] as const)('the waiting jobs of a schedule on %s', (_, makeHarness) => {
  it('are deleted when the schedule is removed, and other jobs are not', async () => {
    const { mill, harness, lead, ids } = await scene(makeHarness)
    await mill.schedules.set('s', { every: '1s', task, enqueue: { delay: '6s' } })
    await mill.schedules.set('t', { every: '2s', task })
    for (let i = 0; i < 4; i += 1) {
      await harness.advance(1_000)
      await lead.look()
    }
    expect(await ids()).toEqual([
      ...['s@10:00:01Z', 's@10:00:02Z', 's@10:00:03Z', 's@10:00:04Z'],
      ...['t@10:00:02Z', 't@10:00:04Z'],
    ])
    expect(await mill.schedules.remove('s')).toBe(true)
    expect(await ids()).toEqual(['t@10:00:02Z', 't@10:00:04Z'])
    expect(await mill.schedules.remove('s')).toBe(false)
  })

  it('are counted by a pause, keep running, and are deleted on request unless they have begun', async () => {
    const { mill, store, harness, lead, ids } = await scene(makeHarness)
    await mill.schedules.set('s', { every: '1s', task })
    for (let i = 0; i < 3; i += 1) {
      await harness.advance(1_000)
      await lead.look()
    }
    const claim = () => store.claim([{ queue: 'default', limit: 1 }], { worker: 'w', leaseMs: 30_000 })
    const [failed] = (await claim()).claims
    const { queue, id, fence } = failed!
    await store.settle([{ queue, id, fence, kind: 'retry', delayMs: 60_000, error: 'no' }])
    const [running] = (await claim()).claims
    expect(await mill.schedules.pause('s')).toBe(1)
    expect(await mill.schedules.clear('s')).toBe(1)
    expect((await ids()).sort()).toEqual([failed!, running!].map((one) => one.id.replace('2026-11-25T', '')).sort())
    await expect(mill.schedules.clear('none')).rejects.toThrow(/there is no schedule 'none'/)
  })

  it('stay if they have begun and sleep, or wait for a signal', async () => {
    const { mill, store, harness, lead, ids } = await scene(makeHarness)
    await mill.schedules.set('s', { every: '1s', task })
    for (let i = 0; i < 3; i += 1) {
      await harness.advance(1_000)
      await lead.look()
    }
    const { claims } = await store.claim([{ queue: 'default', limit: 2 }], { worker: 'w', leaseMs: 30_000 })
    const [sleeps, waits] = claims as [(typeof claims)[0], (typeof claims)[0]]
    for (const claim of [sleeps, waits])
      await store.steps!.keep(claim, { name: 'charge', kind: 'step', payload: '1' }, 30_000)
    await store.settle([{ ...sleeps, kind: 'release', delayMs: 60_000 }])
    await store.settle([{ ...waits, kind: 'wait', signal: 'go', withinMs: 60_000 }])

    expect(await mill.schedules.pause('s')).toBe(1)
    expect(await mill.schedules.remove('s')).toBe(true)
    expect((await ids()).sort()).toEqual([sleeps, waits].map((one) => one.id.replace('2026-11-25T', '')).sort())
  })

  it('stay if the task is ordered, because payloads of others may wait with them', async () => {
    const { mill, harness, lead, jobs } = await scene(makeHarness)
    await mill.schedules.set('o', { every: '1s', task: order, enqueue: { delay: '1m' } })
    await harness.advance(1_000)
    await lead.look()
    expect(await mill.schedules.remove('o')).toBe(true)
    expect((await jobs('order')).map(({ id }) => id)).toEqual(['o-1'])
  })

  it('include every tick that was due before a pause, and none from the pause', async () => {
    const { mill, harness, lead, ids } = await scene(makeHarness)
    await mill.schedules.set('s', { every: '1s', task })
    const ticked = recorded(mill, 'schedule.ticked')
    // Nobody leads for three seconds.
    await harness.advance(3_000)
    expect(await mill.schedules.pause('s')).toBe(3)
    expect(ticked.map(({ lateMs }) => lateMs)).toEqual([2_000, 1_000, 0])
    await harness.advance(3_000)
    await mill.schedules.resume('s')
    await harness.advance(1_000)
    await lead.look()
    expect(await ids()).toEqual(['s@10:00:01Z', 's@10:00:02Z', 's@10:00:03Z', 's@10:00:07Z'])
    expect(await mill.schedules.get('s')).toMatchObject({ ticked: 4, missed: 0, skipped: 0 })
  })

  it('include no tick that was missed before a pause; it is reported and counted', async () => {
    const { mill, harness, ids } = await scene(makeHarness)
    await mill.schedules.set('s', { every: '1h', task })
    const missed = recorded(mill, 'schedule.missed')
    await harness.advance(2.5 * 3_600_000)
    await mill.schedules.pause('s')
    const tickAt = startAt + 3_600_000
    expect(missed).toEqual([{ schedule: 's', queue: 'default', tickAt, enqueued: 0, leftOut: 2, reason: 'paused' }])
    expect([await ids(), (await mill.schedules.get('s'))?.missed]).toEqual([[], 2])
  })

  it('are at most as many as the queue accepts; the rest are reported as missed', async () => {
    const { mill, harness, ids } = await scene(makeHarness, { queues: { default: { maxPending: 4 } } })
    await mill.schedules.set('s', { every: '1s', task })
    const missed = recorded(mill, 'schedule.missed')
    await harness.advance(7_000)
    await mill.schedules.pause('s')
    expect(await ids()).toHaveLength(4)
    expect(missed).toMatchObject([{ enqueued: 0, leftOut: 3, reason: 'paused' }])
    expect(await mill.schedules.get('s')).toMatchObject({ ticked: 4, missed: 3, lastAt: new Date(startAt + 7_000) })
  })

  it('include the due ticks of the earlier rule after a change', async () => {
    const { mill, harness, ids } = await scene(makeHarness)
    await mill.schedules.set('s', { every: '1h', task, input: 'old' })
    await harness.advance(3 * 3_600_000 + 60_001)
    const missed = recorded(mill, 'schedule.missed')
    const set = await mill.schedules.set('s', { every: '2h', task, input: 'new' })
    expect(await ids()).toEqual(['s@13:00:00Z'])
    expect(missed).toMatchObject([{ enqueued: 1, leftOut: 2, reason: 'late' }])
    expect(set).toMatchObject({ nextAt: new Date('2026-11-25T14:00Z'), ticked: 1, missed: 2 })
  })
})
