/** The settings of a queue as the store is told them. */

import type { Queue } from '../../core/queue/queue.js'
import type { Registry } from '../../core/registry.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'

/** The settings of all declared queues. */
export function settingsOfAll(registry: Registry): QueueSettings[] {
  return [...registry.queues.values()].map((queue) => settingsOf(queue, registry.orderedTask(queue.name)))
}

/** What the store must know of a queue. How its payloads merge is the task's to say: where none is known, it stays as stored. */
export function settingsOf(queue: Queue, task: AnyOrderedTask | undefined): QueueSettings {
  const { name, ordered, fifo, order, shards, exclusive, throttle, maxRunning, maxPending, maxCrashes, results, dead } =
    queue
  return {
    name,
    kind: ordered ? 'ordered' : 'plain',
    order,
    maxCrashes,
    shards,
    dead,
    ...(ordered ? { exclusive } : {}),
    ...(fifo ? { fifo } : {}),
    ...(task === undefined ? {} : { merge: task.merge }),
    ...(throttle === undefined ? {} : { throttle }),
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(maxPending === undefined ? {} : { maxPending }),
    ...(results === 'none' || results.count === undefined ? {} : { resultsCount: results.count }),
  }
}
