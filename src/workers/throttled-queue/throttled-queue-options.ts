/** The options of a throttled queue, their check, and the queue that they describe. */

import * as v from 'valibot'
import { ConfigError, InvalidArgumentError } from '../../core/errors.js'
import { type Queue, queueOf, queueOptionsSchema } from '../../core/queue/queue.js'
import { throttleOf } from '../../core/queue/throttle-options.js'
import { describe } from '../../core/values/describe.js'
import type { Duration } from '../../core/values/duration.js'
import { isQueueName, queueNameForm } from '../../core/values/ids.js'
import { duration, exactly, parsed, whole } from '../../core/values/option-check.js'

/**
 * The options of a throttled queue. All handles of a queue, in all processes, must give the same limit, or none;
 * another limit is refused.
 */
export interface ThrottledQueueOptions {
  /** The most pops in any window, wherever it begins; 1 … 1,000,000. Default: the stored throttle of the queue. */
  readonly limit?: number | undefined
  /** The length of the window. Required with `limit`. A number is milliseconds: ten seconds are `'10s'` or `10_000`. */
  readonly window?: Duration | undefined
  /** Whether pops are evenly spaced, one in each `window / limit`. Default false. No effect with a limit of 1. */
  readonly moderate?: boolean | undefined
  /**
   * With `moderate`: whether a tempo that fell behind while there were items may catch up, as long as more than
   * `buffer` pops of the window are unused; 0 … `limit` − 1. Default: it may not.
   */
  readonly elastic?: { readonly buffer: number } | undefined
  /** Queues with the same scope share one limit. Default: the name of the queue. */
  readonly scope?: string | undefined
  /**
   * The order of pops. `'priority'`: the highest first, equal ones in the order of their pushes. `'fifo'` and `'lifo'`:
   * the oldest or the newest first; items have no priority. Default: the order that the mill declares for the queue,
   * otherwise `'priority'`.
   */
  readonly order?: 'priority' | 'fifo' | 'lifo' | undefined
}

const schema = v.pipe(
  exactly({
    limit: v.optional(whole(1, 1_000_000)),
    window: v.optional(duration(1)),
    moderate: v.optional(v.boolean(), false),
    elastic: v.optional(exactly({ buffer: whole(0) })),
    scope: v.optional(v.custom<string>(isQueueName, `must be ${queueNameForm}`)),
    order: v.optional(v.picklist(['priority', 'fifo', 'lifo'])),
  }),
  v.check(
    ({ limit, window }) => (limit === undefined) === (window === undefined),
    'must have `limit` and `window`, or neither',
  ),
  v.check(
    ({ limit, moderate, elastic, scope }) =>
      limit !== undefined || !(moderate || elastic !== undefined || scope !== undefined),
    'must have `limit` and `window` if they have any other option of the throttle',
  ),
  v.check(
    ({ moderate, elastic }) => moderate || elastic === undefined,
    '`elastic` needs `moderate: true`: only an even tempo can fall behind',
  ),
  v.check(
    ({ limit, elastic }) => limit === undefined || elastic === undefined || elastic.buffer < limit,
    '`elastic.buffer` must be less than `limit`, or there is nothing to catch up with',
  ),
)

/** A queue whose jobs are items, and whether items have priorities. */
export interface ItemQueue {
  readonly queue: Queue
  readonly hasPriorities: boolean
}

/**
 * The queue that the options describe: the declared queue, with the throttle and order of the options. Throws
 * `ConfigError`, or `InvalidArgumentError` for an invalid name.
 */
export function itemQueueOf(name: string, options: ThrottledQueueOptions, declared: Queue | undefined): ItemQueue {
  if (!isQueueName(name))
    throw new InvalidArgumentError(`the name of a throttled queue must be ${queueNameForm}; got ${describe(name)}.`)
  const what = `throttled queue '${name}'`
  const { limit, window, moderate, elastic, scope, order } = parsed(schema, options, what)
  const base = declared ?? queueOf(name, parsed(queueOptionsSchema, {}, what))
  if (base.ordered)
    throw new ConfigError(what, [
      { path: '(name)', message: 'is an ordered queue, whose payloads merge: give the throttled queue another name' },
    ])
  const throttle =
    limit === undefined || window === undefined
      ? base.throttle
      : throttleOf(name, { limit, window, moderate, elastic, scope })
  const queue = {
    ...base,
    throttle,
    order: order === undefined ? base.order : order === 'lifo' ? 'lifo' : 'fifo',
  } as const
  return { queue, hasPriorities: order === undefined || order === 'priority' }
}
