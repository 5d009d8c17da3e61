/** The settings of a queue in the form that a store takes. */

import { declaredLimits, type Queue } from '../../core/queue/queue.js'
import type { Registry } from '../../core/registry.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import type { QueueSettings } from '../../stores/contract/queue-settings.js'

/** The settings of all declared queues. */
export function settingsOfAll(registry: Registry): QueueSettings[] {
  return [...registry.queues.values()].map((queue) => settingsOf(queue, registry.orderedTask(queue.name)))
}

/** The settings of a queue. The task says how payloads merge; if no task is known, the stored setting stays. */
export function settingsOf(queue: Queue, task: AnyOrderedTask | undefined): QueueSettings {
  const { name, ordered, fifo, order, shards, exclusive, throttle } = queue
  return {
    name,
    kind: ordered ? 'ordered' : 'plain',
    order,
    shards,
    ...(ordered ? { exclusive } : {}),
    ...(fifo ? { fifo } : {}),
    ...(task === undefined ? {} : { merge: task.merge }),
    ...(throttle === undefined ? {} : { throttle }),
    ...declaredLimits(queue),
  }
}
