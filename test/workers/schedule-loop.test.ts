/** Workers and schedules, on a real clock: whoever leads ticks, whatever its own code knows. */
import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { systemClock } from '#src/core/platform/clock.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../next-event.js'
import { storeKinds, testMill, testMillOn } from '../test-mill.js'

const task = defineTask({ name: 'work', run: (input: unknown) => input })
const often = { every: '1s', task } as const

describe.each(storeKinds)('a worker on %s', (kind) => {
  it('enqueues the ticks of declared schedules, and runs them', async () => {
    const mill = testMill({ tasks: [task], schedules: { often: { ...often, input: 'declared' } } }, kind)
    const ran = nextEvent(mill, 'job.completed')
    const ticked = nextEvent(mill, 'schedule.ticked')
    await mill.worker().start()
    const { id, schedule, tickAt, lateMs } = await ticked
    expect([schedule, id]).toEqual(['often', `often@${new Date(tickAt).toISOString().replace('.000Z', 'Z')}`])
    expect(lateMs).toBeGreaterThanOrEqual(0)
    expect((await ran).id).toBe(id)
  })

  it('notices at once a schedule that is set while it sleeps', async () => {
    const mill = testMill({ tasks: [task] }, kind)
    await mill.worker().start()
    const ticked = nextEvent(mill, 'schedule.ticked', ({ schedule }) => schedule === 'set')
    const setAt = performance.now()
    await mill.schedules.set('set', { ...often, input: 'set' })
    await ticked
    // A tick a second, and nobody to wake the lead but the change: else it looks every 5 s.
    expect(performance.now() - setAt).toBeLessThan(4_000)
  })
})

describe('two workers', () => {
  const deploy = () => {
    const data = new MemoryData()
    const mill = (input: string, name: string) =>
      testMillOn(new MemoryStore(systemClock, data), { tasks: [task], schedules: { [name]: { ...often, input } } })
    return { old: mill('old', 'before'), next: mill('new', 'after') }
  }

  it('during a deploy tick only the schedules of the new code, even from the old code', async () => {
    const { old, next } = deploy()
    const ticked = recorded(old, 'schedule.ticked')
    await old.worker().start()
    await nextEvent(old, 'schedule.ticked')
    const worker = next.worker()
    await worker.start()
    await worker.stop()
    ticked.length = 0
    await nextEvent(old, 'schedule.ticked', ({ schedule }) => schedule === 'after')
    await nextEvent(old, 'schedule.ticked', ({ schedule }) => schedule === 'after')
    expect(new Set(ticked.map(({ schedule }) => schedule))).toEqual(new Set(['after']))
    expect((await old.schedules.list()).schedules.map(({ name }) => name)).toEqual(['after'])
  })

  it('replace each other: a stopped one leads no more', async () => {
    const { old, next } = deploy()
    const worker = old.worker()
    await worker.start()
    await nextEvent(old, 'schedule.ticked')
    await worker.stop()
    const ticked = nextEvent(next, 'schedule.ticked')
    const startedAt = performance.now()
    await next.worker().start()
    await ticked
    expect(performance.now() - startedAt).toBeLessThan(4_000)
  })
})
