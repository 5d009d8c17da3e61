/** The trouble counters: what they count of the events of a mill, and what travels of that. */

import type { WorkerRecord } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { TimeLimitError } from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import { HistoryCounters, hourNumbers } from '#src/measures/history-counters.js'
import {
  addedProcessCounters,
  mostFailureRows,
  noProcessCounters,
  processMetricsIn,
  TroubleCounters,
  troubleEvents,
} from '#src/measures/process-metrics.js'
import { workerMetrics, workersByQueue } from '#src/measures/worker-counts.js'
import type { HistoryCounts } from '#src/stores/contract/history.js'

function counted() {
  const events = new Events()
  const counters = new TroubleCounters(events)
  const fail = (queue: string, error: unknown) =>
    events.emit('job.failed', { queue, id: '1', task: 't', attempt: 1, error, retryMs: undefined })
  return { events, counters, fail }
}

describe('the trouble counters', () => {
  it("counts failures by queue and code, with codes other than ours as 'error'", () => {
    const { counters, fail } = counted()
    fail('mail', new Error('no such address'))
    fail('mail', Object.assign(new Error('away'), { code: 'ECONNREFUSED' }))
    fail('mail', new TimeLimitError('t', '5s'))
    fail('orders', 'text')

    expect(counters.counts.failures).toEqual([
      ['mail', 'error', 2],
      ['mail', 'time-limit-exceeded', 1],
      ['orders', 'error', 1],
    ])
  })

  it('counts each kind of trouble from 0, and nothing after it is closed', () => {
    const { events, counters } = counted()
    expect(counters.counts.events).toEqual(Object.fromEntries(troubleEvents.map((name) => [name, 0])))
    const emit = () => events.emit('store.failed', { call: 'claim', error: new Error('away'), retryMs: 100 })
    emit()
    emit()
    counters.close()
    emit()

    expect(counters.counts.events['store.failed']).toBe(2)
    expect(troubleEvents.filter((name) => events.has(name))).toEqual([])
  })

  it('is limited in size, whatever queues fail', () => {
    const { counters, fail } = counted()
    for (let i = 0; i < mostFailureRows + 10; i += 1) fail(`queue-${i}`, new Error('no'))
    expect(counters.counts.failures).toHaveLength(mostFailureRows)
  })

  it('adds up over processes', () => {
    const { counters, fail } = counted()
    fail('mail', new Error('no'))
    const twice = addedProcessCounters(addedProcessCounters(noProcessCounters, counters.counts), counters.counts)
    expect(twice.failures).toEqual([['mail', 'error', 2]])
    expect(counters.counts.failures).toEqual([['mail', 'error', 1]])
  })

  it.each([
    [{}],
    [null],
    [{ rssBytes: -1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [], events: {} }],
    [{ rssBytes: 1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [['mail', 'error', '7']], events: {} }],
    [{ rssBytes: 1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [], events: { 'store.failed': 'x' } }],
  ])('refuses invalid measures of a process: %j', (said) => {
    expect(processMetricsIn(said)).toBeUndefined()
  })
})

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

const hour = 3_600_000

function hourOf(at: number, completed: number) {
  const zeros = { enqueued: 0, started: 0, completed, failed: 0, dead: 0, crashed: 0, cancelled: 0 }
  const counts: HistoryCounts = { ...zeros, runMs: completed * 10, runTimes: [completed, 0, 0, 0, 0, 0, 0] }
  return hourNumbers(at, counts)
}

describe('the counters of a history', () => {
  it('begin at 0 and grow with the open hours, including late counts of the last hour', () => {
    const counters = new HistoryCounters()
    const read = (...hours: number[][]) => {
      counters.add([{ name: 'mail', hours }])
      return counters.of('mail')?.completed
    }

    expect(read(hourOf(0, 70), hourOf(hour, 5))).toBe(0)
    expect(read(hourOf(0, 71), hourOf(hour, 9))).toBe(5)
    expect(read(hourOf(hour, 10), hourOf(2 * hour, 3))).toBe(9)
    expect(counters.of('mail')).toMatchObject({ runMs: 90, runTimes: [9, 0, 0, 0, 0, 0, 0] })
  })

  it('never decrease if the history does, and continue from there', () => {
    const counters = new HistoryCounters()
    for (const completed of [0, 8, 2, 3]) counters.add([{ name: 'mail', hours: [hourOf(0, completed)] }])
    expect(counters.of('mail')?.completed).toBe(9)
    counters.add([{ name: 'mail', hours: [] }])
    expect(counters.of('mail')?.completed).toBe(9)
  })

  it('include a queue that appears later, and continue with one that reappears', () => {
    const counters = new HistoryCounters()
    counters.add([])
    counters.add([{ name: 'mail', hours: [hourOf(0, 4)] }])
    counters.add([])
    counters.add([{ name: 'mail', hours: [hourOf(0, 6)] }])
    expect(counters.of('mail')?.completed).toBe(6)
    expect(counters.of('nobody')).toBeUndefined()
  })

  it('forget removed queues, so that changing names do not fill the memory', () => {
    const counters = new HistoryCounters()
    for (let i = 0; i < 3_000; i += 1) counters.add([{ name: `queue-${i}`, hours: [hourOf(0, 1)] }])
    const kept = Array.from({ length: 3_000 }, (_, i) => counters.of(`queue-${i}`)).filter((one) => one !== undefined)
    expect(kept.length).toBeLessThanOrEqual(2_000)
  })
})
