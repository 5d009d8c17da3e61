/** Counts of workers: how many there are, and how many take jobs of each queue. Pure. */

import { defined } from '../core/values/defined.js'
import type { QueueDepth } from '../stores/contract/queue-depth.js'
import type { WorkerRecord } from '../stores/contract/worker-registry.js'
import { mostWorkers, type WorkerMetrics } from './mill-metrics.js'

/** The name and host of all workers together. */
const everyone = '*'

/** Each worker or, if there are too many, all of them as one. `silent`: how many others have not reported lately. */
export function workerMetrics(workers: readonly WorkerRecord[], silent: number): WorkerMetrics {
  const stopping = workers.filter(isStopping).length
  return {
    running: workers.length - stopping,
    stopping,
    silent,
    each: workers.length > mostWorkers ? [together(workers)] : workers.map(metricsOf),
  }
}

/** How many workers take jobs of each queue. */
export function workersByQueue(workers: readonly WorkerRecord[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const worker of workers)
    if (!isStopping(worker)) for (const queue of worker.queues) counts.set(queue, (counts.get(queue) ?? 0) + 1)
  return counts
}

/** Whether jobs wait and nobody takes them. `workers`: how many take jobs of the queue; undefined if the store does not know. */
export function isUnserved(
  { ready, scheduled }: Pick<QueueDepth, 'ready' | 'scheduled'>,
  workers: number | undefined,
): boolean {
  return workers === 0 && ready + scheduled > 0
}

function isStopping({ state }: WorkerRecord): boolean {
  return state === 'stopping'
}

function metricsOf({ id, host, concurrency, running, rssBytes, loopDelayMs }: WorkerRecord) {
  return { ...{ id, host, slots: concurrency, running }, ...defined({ rssBytes, loopDelayMs }) }
}

/** Sums; for delays the longest. */
function together(workers: readonly WorkerRecord[]): WorkerMetrics['each'][number] {
  const sum = (of: (worker: WorkerRecord) => number) => workers.reduce((total, worker) => total + of(worker), 0)
  return {
    id: everyone,
    host: everyone,
    slots: sum(({ concurrency }) => concurrency),
    running: sum(({ running }) => running),
    rssBytes: sum(({ rssBytes = 0 }) => rssBytes),
    loopDelayMs: Math.max(...workers.map(({ loopDelayMs = 0 }) => loopDelayMs)),
  }
}
