/**
 * A throttled queue: items that are pushed at any pace and popped at a limited one, by any number of processes; its
 * options, and the queue that they describe.
 */
/// <reference lib="esnext.disposable" preserve="true" />

import * as v from 'valibot'
import { total } from '../client/admin/step-loop.js'
import { Client, type ClientParts } from '../client/enqueue/client.js'
import { Sender } from '../client/enqueue/sender.js'
import { recordsOf } from '../client/store-facets.js'
import { ClosedError, ConfigError, InvalidArgumentError } from '../core/errors.js'
import { describe } from '../core/messages/describe.js'
import { type Queue, queueOf, queueOptionsSchema } from '../core/queue/queue.js'
import { groupRules, type ThrottleRule } from '../core/queue/throttle.js'
import { throttleOf } from '../core/queue/throttle-options.js'
import { Registry } from '../core/registry.js'
import type { Surroundings } from '../core/surroundings.js'
import { defineTask } from '../core/task/task.js'
import { refuseMore } from '../core/values/call-check.js'
import type { Duration } from '../core/values/duration.js'
import { isQueueName, queueNameForm } from '../core/values/ids.js'
import { keptCall } from '../core/values/kept-call.js'
import { duration, exactly, parsed, whole } from '../core/values/option-check.js'
import type { StoredQueue } from '../stores/contract/queue-settings.js'
import type { Store } from '../stores/contract/store.js'
import { limitsMs } from './claims/limited-queues.js'
import { type PoppedJob, Pops } from './pops.js'

/** Opens the queue, and resolves with its stored settings. */
type OpenQueue = (queue: ItemQueue['queue']) => Promise<{ readonly store: Store; readonly stored: StoredQueue }>

/** The task name of items in records. */
const itemTask = 'item'

/**
 * A throttled queue, made by `mill.throttledQueue(name, options)`. It opens the queue at its first call. Each method
 * may therefore throw `ThrottleConflictError` if the stored throttle differs from the given one, `ConfigConflictError`
 * for another order, `UnsupportedByStoreError` for a store without throttles, `InvalidArgumentError` if neither the
 * queue nor the options have a throttle or if it counts by group, and `ClosedError` once the mill is closed.
 */
export class ThrottledQueue<Item = unknown> implements AsyncDisposable {
  readonly name: string
  readonly #item: ItemQueue
  readonly #openQueue: OpenQueue
  readonly #onClose: () => void
  readonly #task
  readonly #client: Client
  readonly #pops: Pops
  /** The store with this queue open. A failed opening is tried again at the next call. */
  readonly #connect = keptCall(() => this.#open())
  #limits: readonly ThrottleRule[] = []
  /** When they were looked up last (monotonic). */
  #limitsAt = 0
  readonly #mono: () => number
  #closed = false

  /**
   * `onClose` is called when it was closed: nobody need close it again.
   * @internal
   */
  constructor(
    item: ItemQueue,
    surroundings: Surroundings,
    client: Omit<ClientParts, 'sender'>,
    openQueue: OpenQueue,
    onClose: () => void,
  ) {
    this.name = item.queue.name
    this.#mono = () => surroundings.clock.mono()
    this.#item = item
    this.#openQueue = openQueue
    this.#onClose = onClose
    // It never runs, so no lease is too short for it.
    this.#task = defineTask({ name: itemTask, queue: this.name, timeLimit: 1 })
    const registry = new Registry([this.#task], [item.queue])
    this.#client = new Client({
      ...client,
      rules: async () => ({ ...(await client.rules()), registry }),
      sender: new Sender(this.#connect, this.#mono),
    })
    const worker = `pop-${surroundings.newId()}`
    this.#pops = new Pops({ ...surroundings, worker }, this.name, this.#connect, (store) => this.#currentLimits(store))
  }

  /**
   * Puts an item into the queue; pushes are never limited. An item is any value that the mill's codec takes; two equal
   * items are two. `priority`: −32,768 … 32,767, the highest is popped first. Default 0. Resolves when the item is
   * stored. Throws `InvalidArgumentError` for a priority in a queue of order `'fifo'` or `'lifo'`, and the errors of
   * `mill.enqueue()`.
   */
  async push(item: Item, priority = 0): Promise<void> {
    this.#refuseClosed()
    if (priority !== 0 && !this.#item.hasPriorities)
      throw new InvalidArgumentError(
        `items of the throttled queue '${this.name}' have no priority; got ${describe(priority)}. Leave it out, or leave \`order\` out or set it to 'priority'.`,
      )
    await this.#client.enqueue(this.#task, item, { priority })
  }

  /**
   * Takes the next item; null if none is available now. `tryPop()` gives the reason, and distinguishes an item that is
   * null from none.
   *
   * **At most once: the item is gone from the store when this resolves. Nobody else will ever receive it, even if the
   * caller dies in the next moment.** If an item must not be lost, define a task and let a worker run it: it then runs
   * at least once, at the same pace. If the caller dies before this resolves, the item is back after 10 s, and in the
   * morgue once that has happened `maxCrashes` times.
   *
   * Never waits for an item. An empty queue costs no start. After a denial the store is not asked again before the
   * limit opens, but at least once a second. Throws `StoreUnavailableError`: an item on its way is back after 10 s, or
   * is gone if the store took its end and could not answer.
   */
  async pop(): Promise<Item | null> {
    const popped = await this.tryPop()
    return popped.wait === undefined ? popped.item : null
  }

  /**
   * Like `pop()`, but says why there is no item: `'empty'`; `'throttled'`, the limit denies it; `'scheduled'`, no item
   * is due; `'full'`, the queue's `maxRunning` is reached, or this process must be alone with a job that crashed;
   * `'paused'`. `forMs`: ms until something changes by itself; absent if unknown.
   */
  async tryPop(): Promise<PoppedJob<Item>> {
    this.#refuseClosed()
    return (await this.#pops.next()) as PoppedJob<Item>
  }

  /** The number of waiting items, whether or not they may be popped now. */
  async length(): Promise<number> {
    const { depths } = await (await this.#connect()).depth([this.name])
    const { fresh, retries } = depths[0]!
    return fresh + retries
  }

  /**
   * Removes every item. Resolves with the number removed. Popped items still count until their window has passed:
   * emptying a queue must not lift a limit that protects another system.
   */
  async clear(): Promise<number> {
    const records = recordsOf(await this.#connect())
    const cleared = await total(() => records.clear(this.name))
    this.#pops.forget()
    return cleared
  }

  /** Refuses pushes and pops from now on, and resolves when no pop is under way. `mill.close()` calls it. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#pops.idle()
    this.#onClose()
  }

  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #open(): Promise<Store> {
    const { store, stored } = await this.#openQueue(this.#item.queue)
    if (stored.throttle === undefined)
      throw new InvalidArgumentError(
        `queue '${this.name}' has no throttle; give mill.throttledQueue('${this.name}', …) a \`limit\` and a \`window\`.`,
      )
    // Groups would wait and be denied separately, which the answer to a pop cannot express.
    if (groupRules(stored.throttle) !== undefined)
      throw new InvalidArgumentError(
        `queue '${this.name}' is limited by group, and a throttled queue has no groups: let a worker run its jobs, or give each group a throttled queue of its own.`,
      )
    this.#limits = stored.throttle.rules
    this.#limitsAt = this.#mono()
    return store
  }

  /** Looks them up again from time to time. If that fails, those of before count. */
  async #currentLimits(store: Store): Promise<readonly ThrottleRule[]> {
    const now = this.#mono()
    if (now - this.#limitsAt < limitsMs) return this.#limits
    this.#limitsAt = now
    try {
      this.#limits = (await store.throttles?.state(this.name))?.throttle.rules ?? this.#limits
    } catch {
      // The claim beside this reports what is wrong with the store.
    }
    return this.#limits
  }

  #refuseClosed(): void {
    if (this.#closed) throw new ClosedError(`throttled queue '${this.name}'`)
  }
}

refuseMore('throttledQueue.', ThrottledQueue.prototype, {
  promised: { push: 2, pop: 0, tryPop: 0, length: 0, clear: 0, close: 0 },
})

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

/**
 * A queue whose jobs are items, and whether items have priorities.
 * @internal
 */
interface ItemQueue {
  readonly queue: Queue
  readonly hasPriorities: boolean
}

/**
 * The queue that the options describe: the declared queue, with the throttle and order of the options. Throws
 * `ConfigError`, or `InvalidArgumentError` for an invalid name.
 * @internal
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
