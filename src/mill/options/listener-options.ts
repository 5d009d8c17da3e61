/** The options of a listener, and the listener made from them. */

import * as v from 'valibot'
import { InvalidArgumentError } from '../../core/errors.js'
import type { Queue } from '../../core/queue/queue.js'
import { defineTask } from '../../core/task/task.js'
import { boundlessTime, type RetryOptions, retryOptions } from '../../core/task/task-definition.js'
import type { Duration } from '../../core/values/duration.js'
import { exactly, parsed, whole } from '../../core/values/option-check.js'
import type { ListenerParts } from '../../workers/listener/assemble-listener.js'
import { QueueListener } from '../../workers/listener/listener.js'

export interface ListenerOptions {
  /** The most claims in hand; `next()` then waits until one is settled. Default 10. */
  readonly concurrency?: number | undefined
  /** The retry policy after `claim.fail()`. Default: a failure is final, `max` 0. */
  readonly retry?: RetryOptions | undefined
  /**
   * A claim that is not settled within this time is aborted. If it is still not settled 5 s later, it fails. Default
   * `'none'`.
   */
  readonly timeLimit?: Duration | 'none' | undefined
}

const listenerOptions = exactly({
  concurrency: v.optional(whole(1, 100_000), 10),
  retry: retryOptions(),
  timeLimit: v.optional(boundlessTime, 'none'),
})

/**
 * A listener. Throws `ConfigError`, or `InvalidArgumentError` for an ordered queue.
 * @internal
 */
export function listenerOf<Input>(
  queue: Queue,
  options: ListenerOptions,
  parts: Omit<ListenerParts, 'queue' | 'concurrency' | 'task'>,
): QueueListener<Input> {
  if (queue.ordered)
    throw new InvalidArgumentError(
      `queue '${queue.name}' is ordered: its payloads merge while they wait, which a listener cannot show. Give its jobs to a worker, or use a queue that is not ordered.`,
    )
  const { concurrency } = parsed(listenerOptions, options, 'the listener')
  const { retry = {}, timeLimit = 'none' } = options
  const task = defineTask({ name: 'listener', queue: queue.name, isolate: 'process', timeLimit, retry })
  return new QueueListener({ ...parts, queue, concurrency, task })
}
