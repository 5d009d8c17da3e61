import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

describe('a job that expires', () => {
  it('is cancelled by the worker that comes too late, which reports it, and never runs', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1))
    const ran: unknown[] = []
    const task = defineTask({ name: 'send-code', run: async (input) => void ran.push(input) })
    const m = testMillOn(new MemoryStore(clock), { tasks: [task] })
    const late = await m.enqueue(task, 'late', { expiresIn: '2m' })
    await m.enqueue(task, 'in time')
    expect((await late.record())?.expiresAt).toEqual(new Date(clock.now() + 120_000))
    clock.advance(120_000)

    const result = late.result({ timeout: '5s' })
    const told = nextEvent(m, 'job.cancelled')
    const done = nextEvent(m, 'job.completed')
    const worker = m.worker()
    await worker.start()

    expect(await told).toEqual({ queue: 'default', id: late.id, task: 'send-code', reason: 'expired' })
    await expect(result).rejects.toMatchObject({ code: 'job-cancelled', reason: 'expired' })
    await done
    expect(ran).toEqual(['in time'])
    expect(await m.queue('default').depth()).toMatchObject({ expired: 1, processed: 1 })
    expect((await late.record())?.state).toBe('cancelled')
    await worker.stop()
  })
})
