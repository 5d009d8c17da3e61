/** The counts of workers: each by itself, or all as one. */

import type { WorkerRecord } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { workerMetrics, workersByQueue } from '#src/measures/worker-counts.js'

const worker = (i: number, more: Partial<WorkerRecord> = {}): WorkerRecord => ({
  ...{ id: `w${i}`, host: 'h', boot: 'b', pidns: 'n', pid: i, ticks: 1, queues: ['mail'], concurrency: 10, running: 1 },
  ...{ startedAt: 0, ...more },
})

describe('the reading of workers', () => {
  it('lists up to 200 workers, and beyond that only the sums and the longest delay', () => {
    const some = Array.from({ length: 200 }, (_, i) => worker(i, { rssBytes: 1_000, loopDelayMs: i }))
    expect(workerMetrics(some).each).toHaveLength(200)
    expect(workerMetrics([...some, worker(200, { state: 'stopping' })])).toEqual({
      running: 200,
      stopping: 1,
      each: [{ id: '*', host: '*', slots: 2_010, running: 201, rssBytes: 200_000, loopDelayMs: 199 }],
    })
  })

  it('counts the workers of each queue, without those that are stopping', () => {
    const counts = workersByQueue([
      worker(1),
      worker(2, { queues: ['mail', 'orders'] }),
      worker(3, { state: 'stopping' }),
    ])
    expect(Object.fromEntries(counts)).toEqual({ mail: 2, orders: 1 })
  })
})
