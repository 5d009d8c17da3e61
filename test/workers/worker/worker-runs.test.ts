import { hostname } from 'node:os'
import { defineTask, type JobRecord, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent } from '../../next-event.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

/** How far the record may be from what the handler has seen, on a busy machine. */
const slackMs = 250

function expectRun({ startedAt, host, pid }: JobRecord, began: number): void {
  expect({ host, pid }).toEqual({ host: hostname(), pid: process.pid })
  expect(Math.abs(startedAt!.getTime() - began)).toBeLessThan(slackMs)
}

describe.each(storeKinds)('the record of a run, on %s', (kind) => {
  it('says where and when the handler began for a job that ended before its first heartbeat', async () => {
    const began: Record<string, number> = {}
    const ends = {
      done: () => 'done',
      last: () => Promise.reject(new Error('no')),
      fatal: () => Promise.reject(new UnrecoverableError('no')),
    }
    const task = defineTask({
      name: 'short',
      retry: { max: 0 },
      run: (input) => {
        const end = input as keyof typeof ends
        began[end] = Date.now()
        return ends[end]()
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const jobs = await Promise.all((['done', 'last', 'fatal'] as const).map((end) => m.enqueue(task, end, { id: end })))
    await m.worker().start()
    await Promise.allSettled(jobs.map((job) => job.result({ timeout: '5s' })))

    for (const job of jobs) expectRun((await job.record())!, began[job.id]!)
  })

  it('says when the handler began for a running job, not when the store first heard of it', async () => {
    let began = 0
    let end: () => void = () => {}
    const task = defineTask({
      name: 'long',
      run: () => {
        began = Date.now()
        return new Promise<void>((resolve) => {
          end = resolve
        })
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    await m.worker().start()
    const running = await poll(
      async () => {
        const record = await job.record()
        return record?.startedAt && record
      },
      { what: 'the first beat', withinMs: 10_000 },
    )
    end()

    expectRun(running, began)
  })
})

describe('a completed job whose handler returned nothing', () => {
  async function afterRunOf(ms: number, results?: 'none') {
    const clock = new ManualClock(1_000_000)
    const task = defineTask({ name: 'work', run: () => clock.advance(ms) })
    const queues = results === undefined ? {} : { default: { retention: { results } } }
    const m = testMillOn(new MemoryStore(), { tasks: [task], queues }, clock)
    const job = await m.enqueue(task, { n: 1 })
    const completed = nextEvent(m, 'job.completed')
    await m.worker().start()
    await completed
    return { job, jobs: m.queue('default').jobs }
  }

  it('leaves its record if it ran for a second', async () => {
    const { job, jobs } = await afterRunOf(1_000)
    const record = await job.record()

    expect(record).toMatchObject({ state: 'completed', task: 'work', input: { n: 1 }, host: hostname() })
    expect(record!.finishedAt!.getTime() - record!.startedAt!.getTime()).toBe(1_000)
    expect(record).not.toHaveProperty('result')
    expect([await job.status(), await job.result()]).toEqual(['completed', undefined])
    expect((await jobs.list({ state: 'completed' })).jobs.map(({ id }) => id)).toEqual([job.id])
  })

  it('leaves nothing if it was shorter, or its queue keeps no results', async () => {
    for (const { job } of [await afterRunOf(999), await afterRunOf(1_000, 'none')]) {
      expect(await job.status()).toBeUndefined()
      await expect(job.result()).rejects.toMatchObject({ code: 'result-not-kept' })
    }
  })
})
