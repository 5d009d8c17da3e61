/** The metrics of a process: its memory and the delay of its event loop, and its counters of tasks, failures and other trouble. */

import * as v from 'valibot'
import { isMillraceError } from '../core/errors.js'
import type { EventName, Listener } from '../core/events.js'
import { type MetricSamples, seconds } from './exposition.js'
import { addedTaskRows, addTasks, taskRowsShape } from './task-counters.js'

/** The most rows of failures of one process: pairs of a queue and a reason. */
export const mostFailureRows = 500

const amount = v.pipe(v.number(), v.finite(), v.minValue(0))

const metricsShape = v.object({
  rssBytes: amount,
  heapBytes: amount,
  loopDelayMs: amount,
  upMs: amount,
  /** Since the process began to count. */
  failures: v.pipe(v.array(v.tuple([v.string(), v.string(), amount])), v.maxLength(mostFailureRows)),
  events: v.record(v.string(), amount),
  tasks: taskRowsShape,
})

/** The form in which they travel between processes. */
export type ProcessMetrics = v.InferOutput<typeof metricsShape>
export type ProcessCounters = Pick<ProcessMetrics, 'failures' | 'events' | 'tasks'>

export const noProcessCounters: ProcessCounters = { failures: [], events: {}, tasks: [] }

/** Undefined for an invalid value. */
export function processMetricsIn(value: unknown): ProcessMetrics | undefined {
  const { success, output } = v.safeParse(metricsShape, value)
  return success ? output : undefined
}

export function addedProcessCounters(one: ProcessCounters, other: ProcessCounters): ProcessCounters {
  const failures = new Map(one.failures.map((row) => [JSON.stringify(row.slice(0, 2)), row]))
  for (const [queue, reason, count] of other.failures) {
    const key = JSON.stringify([queue, reason])
    failures.set(key, [queue, reason, count + (failures.get(key)?.[2] ?? 0)])
  }
  const events = { ...one.events }
  for (const [name, count] of Object.entries(other.events)) events[name] = count + (events[name] ?? 0)
  return { failures: [...failures.values()], events, tasks: addedTaskRows(one.tasks, other.tasks) }
}

export function addVitals(
  samples: MetricSamples,
  pid: number,
  { rssBytes, heapBytes, loopDelayMs, upMs }: Omit<ProcessMetrics, keyof ProcessCounters>,
): void {
  const labels = { pid: String(pid) }
  samples.add('millrace_process_resident_memory_bytes', labels, rssBytes)
  samples.add('millrace_process_heap_bytes', labels, heapBytes)
  samples.add('millrace_process_loop_delay_seconds', labels, seconds(loopDelayMs))
  samples.add('millrace_process_uptime_seconds', labels, seconds(upMs))
}

export function addCounters(samples: MetricSamples, { failures, events, tasks }: ProcessCounters): void {
  addTasks(samples, tasks)
  for (const [queue, reason, count] of failures) samples.add('millrace_failures_total', { queue, reason }, count)
  for (const [event, count] of Object.entries(events)) samples.add('millrace_events_total', { event }, count)
}

/** The counted events. They are rare, so counting costs next to nothing. */
export const troubleEvents = [
  'job.slow',
  'settle.refused',
  'lease.lost',
  'process.failed',
  'permit.wasted',
  'start.late',
  'result.dropped',
  'slot.retired',
  'loop.blocked',
  'queue.damaged',
  'task.unknown',
  'schedule.missed',
  'schedule.refused',
  'worker.failed',
  'store.failed',
  'hook.failed',
] as const satisfies readonly EventName[]

interface TroubledMill {
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void
}

/** The reason of an error that is not one of Millrace's. */
const ownReason = 'error'

/** Counts failed attempts by reason, and events that report a disorder. */
export class TroubleCounters {
  /** By queue and reason. */
  readonly #failures = new Map<string, [queue: string, reason: string, count: number]>()
  readonly #events = new Map<string, number>(troubleEvents.map((name) => [name, 0]))
  readonly #stop: readonly (() => void)[]

  /** Counts from now on. */
  constructor(mill: TroubledMill) {
    const count = (name: string) => {
      this.#events.set(name, this.#events.get(name)! + 1)
    }
    this.#stop = [
      mill.on('job.failed', ({ queue, error }) => this.#failed(queue, error)),
      ...troubleEvents.map((name) => mill.on(name, () => count(name))),
    ]
  }

  get counts(): Omit<ProcessCounters, 'tasks'> {
    return { failures: [...this.#failures.values()], events: Object.fromEntries(this.#events) }
  }

  close(): void {
    for (const stop of this.#stop) stop()
  }

  #failed(queue: string, error: unknown): void {
    const reason = isMillraceError(error) ? error.code : ownReason
    const key = JSON.stringify([queue, reason])
    const row = this.#failures.get(key)
    if (row !== undefined) row[2] += 1
    else if (this.#failures.size < mostFailureRows) this.#failures.set(key, [queue, reason, 1])
  }
}
