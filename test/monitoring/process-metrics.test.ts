/** The counters of a process: what they count of a mill, by trouble and by task, and what travels of that. */

import { defineTask } from 'millrace'
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
import { addedTaskRows, mostTaskRows, TaskCounters } from '#src/measures/task-counters.js'
import { workerMetrics, workersByQueue } from '#src/measures/worker-counts.js'
import type { HistoryCounts } from '#src/stores/contract/history.js'
import { testMill } from '../test-mill.js'

function counted() {
  const events = new Events()
  const counters = new TroubleCounters(events)
  const fail = (queue: string, error: unknown) =>
    events.emit('job.failed', { queue, id: '1', task: 't', attempt: 1, error, retryMs: undefined })
  return { events, counters, fail }
}

const taskRow = {
  queue: 'mail',
  task: 'send',
  completed: 1,
  failed: 0,
  dead: 0,
  runMs: 5,
  runTimes: [1, 0, 0, 0, 0, 0, 0],
}
const measures = { rssBytes: 1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [], events: {}, tasks: [taskRow] }

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
    const counts = { ...counters.counts, tasks: [] }
    const twice = addedProcessCounters(addedProcessCounters(noProcessCounters, counts), counts)
    expect(twice.failures).toEqual([['mail', 'error', 2]])
    expect(counters.counts.failures).toEqual([['mail', 'error', 1]])
  })

  it.each([
    [{}],
    [null],
    [{ ...measures, rssBytes: -1 }],
    [{ ...measures, failures: [['mail', 'error', '7']] }],
    [{ ...measures, events: { 'store.failed': 'x' } }],
    [{ ...measures, tasks: [{ queue: 'mail', task: 'send', completed: 1 }] }],
    [{ ...measures, tasks: new Array(mostTaskRows + 1).fill(taskRow) }],
  ])('refuses invalid measures of a process: %j', (said) => {
    expect(processMetricsIn(said)).toBeUndefined()
  })
})

describe('the task counters', () => {
  const send = defineTask({ name: 'send', aliases: ['mail'], queue: 'mail', run: () => {} })
  const counters = () => new TaskCounters([send])

  it('count the ends of attempts by queue and task, an old name as the task, and undeclared tasks as one', () => {
    const counted = counters()
    counted.completed({ queue: 'mail', task: 'send' }, 7)
    counted.failed({ queue: 'mail', task: 'mail' }, 150)
    counted.buried({ queue: 'mail', task: 'mail' })
    counted.completed({ queue: 'bulk', task: 'send' }, 1)
    for (const task of ['of', 'another', 'service']) counted.buried({ queue: 'mail', task })

    expect(counted.rows).toEqual([
      { queue: 'mail', task: 'send', completed: 1, failed: 1, dead: 1, runMs: 157, runTimes: [1, 0, 1, 0, 0, 0, 0] },
      { queue: 'mail', task: '*', completed: 0, failed: 0, dead: 3, runMs: 0, runTimes: [0, 0, 0, 0, 0, 0, 0] },
      { queue: 'bulk', task: 'send', completed: 1, failed: 0, dead: 0, runMs: 1, runTimes: [1, 0, 0, 0, 0, 0, 0] },
    ])
  })

  it('are limited in size, whatever queues there are, and go on in the rows that they have', () => {
    const counted = counters()
    for (let i = 0; i < mostTaskRows + 10; i += 1) counted.completed({ queue: `queue-${i}`, task: 'send' }, 1)
    counted.completed({ queue: 'queue-0', task: 'send' }, 1)

    expect(counted.rows).toHaveLength(mostTaskRows)
    expect(counted.rows[0]!.completed).toBe(2)
    expect(processMetricsIn({ ...measures, tasks: counted.rows })).toBeDefined()
  })

  it('add up over processes', () => {
    const other = { ...taskRow, task: 'other' }
    const sum = addedTaskRows(addedTaskRows([], [taskRow]), [taskRow, other])
    expect(sum).toEqual([{ ...taskRow, completed: 2, runMs: 10, runTimes: [2, 0, 0, 0, 0, 0, 0] }, other])
    expect(taskRow.runTimes[0]).toBe(1)
  })

  it('of a mill are the same for all who look, and count the jobs that its workers end', async () => {
    let fails = true
    const run = () => {
      if (fails) throw new Error('not yet')
    }
    const tick = defineTask({ name: 'tick', queue: 'mail', retry: { max: 1, backoff: () => 0 }, run })
    const mill = testMill({ queues: { mail: {} }, tasks: [tick] })
    const counted = TaskCounters.of(mill)
    expect(TaskCounters.of(mill)).toBe(counted)
    await mill.worker().start()
    const dead = await mill.enqueue(tick, undefined)
    await dead.result().catch(() => {})
    fails = false
    await (await mill.enqueue(tick, undefined)).result()

    expect(counted.rows).toMatchObject([{ queue: 'mail', task: 'tick', completed: 1, failed: 2, dead: 1 }])
    expect(counted.rows[0]!.runTimes.reduce((sum, count) => sum + count, 0)).toBe(3)
  })
})

const worker = (i: number, more: Partial<WorkerRecord> = {}): WorkerRecord => ({
  ...{ id: `w${i}`, host: 'h', boot: 'b', pidns: 'n', pid: i, ticks: 1, queues: ['mail'], concurrency: 10, running: 1 },
  ...{ startedAt: 0, ...more },
})

describe('the reading of workers', () => {
  it('lists up to 200 workers, and beyond that only the sums and the longest delay', () => {
    const some = Array.from({ length: 200 }, (_, i) => worker(i, { rssBytes: 1_000, loopDelayMs: i }))
    expect(workerMetrics(some, 0).each).toHaveLength(200)
    expect(workerMetrics([...some, worker(200, { state: 'stopping' })], 3)).toEqual({
      running: 200,
      stopping: 1,
      silent: 3,
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
