/** The administration of one queue's throttle: the counted starts, and changes of its limits. */

import * as v from 'valibot'
import { hasCode } from '../../core/error-codes.js'
import { InvalidArgumentError, UnsupportedByStoreError } from '../../core/errors.js'
import type { ThrottleRule } from '../../core/queue/throttle.js'
import { type ThrottleOptions, throttleOf, throttleSchema } from '../../core/queue/throttle-options.js'
import { refuseMore } from '../../core/values/call-check.js'
import { groupMistake, groupNameOf } from '../../core/values/ids.js'
import { parsed } from '../../core/values/option-check.js'
import type { Store } from '../../stores/contract/store.js'
import type { ThrottleState, Throttles } from '../../stores/contract/throttles.js'

/** The current state of a throttle. */
export interface ThrottleStatus extends Omit<ThrottleState, 'throttle'> {
  readonly rules: readonly ThrottleRule[]
  readonly by: 'queue' | 'group'
  readonly scope: string
}

/** The parts of a throttle that can change: all except its unit and its scope. */
export type ThrottleChange = Omit<ThrottleOptions, 'by' | 'scope'>

const changeSchema = v.pipe(
  throttleSchema,
  v.check(
    (change) => [change].flat().every(({ by, scope }) => by === undefined && scope === undefined),
    'must not name `by` or `scope`: they are fixed at first use',
  ),
)

export class ThrottleAdmin {
  readonly #queue: string
  readonly #look: () => Promise<Store>
  readonly #connect: () => Promise<Store>

  /**
   * `look` connects without opening a queue, because opening is refused if the declared throttle differs from the
   * stored one.
   * @internal
   */
  constructor(queue: string, look: () => Promise<Store>, connect: () => Promise<Store>) {
    this.#queue = queue
    this.#look = look
    this.#connect = connect
  }

  /**
   * Its rules and, for each, the starts in the window that ends now (`hits`); the time until the next job may start, in
   * ms; and the queues that share it. If it counts by group, the figures are those of `group` (`''`: jobs without one).
   * Without `group`, `groups` is the number of groups that have started jobs. Undefined if the queue has no throttle.
   * Throws `UnsupportedByStoreError`, `UnknownQueueError`.
   */
  async get(group?: string | number): Promise<ThrottleStatus | undefined> {
    const of = this.#groupOf(group)
    const state = await this.#ask((throttles) => throttles.state(this.#queue, of))
    if (state === undefined) return undefined
    const { throttle, ...counted } = state
    return { ...throttle, ...counted }
  }

  /**
   * Changes the limits for this queue and all queues that share its throttle, at once and in every process; earlier
   * starts still count. Give one window or several; windows that you omit are removed. Declare the same limits in your
   * code: a mill that declares others is refused. Throws `ConfigError` with every mistake, `InvalidArgumentError` if
   * the queue has no throttle, `UnsupportedByStoreError`, `UnknownQueueError`.
   */
  async set(change: ThrottleChange | readonly ThrottleChange[]): Promise<void> {
    const { rules } = throttleOf(this.#queue, parsed(changeSchema, change, `the throttle of queue '${this.#queue}'`))
    await this.#ask((throttles) => throttles.set(this.#queue, rules))
  }

  /** Asks the store without opening the queue; a queue that the store does not have yet is opened first. */
  async #ask<T>(ask: (throttles: Throttles) => Promise<T>): Promise<T> {
    try {
      return await ask(throttlesOf(await this.#look()))
    } catch (error) {
      if (!hasCode(error, 'queue-unknown')) throw error
      return ask(throttlesOf(await this.#connect()))
    }
  }

  #groupOf(given: unknown): string | undefined {
    if (given === undefined) return undefined
    const group = groupNameOf(given)
    if (group !== undefined) return group
    throw new InvalidArgumentError(`a group ${groupMistake(given)}`)
  }
}

refuseMore('throttle.', ThrottleAdmin.prototype, { promised: { get: 1, set: 1 } })

function throttlesOf({ throttles, traits }: Store): Throttles {
  if (throttles !== undefined) return throttles
  throw new UnsupportedByStoreError(traits.name, 'throttles', 'Use a store with throttles, such as sqlite:.')
}
