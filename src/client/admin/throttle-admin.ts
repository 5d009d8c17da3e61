/**
 * The administration of one queue's throttle: the counted starts, changes of its limits, and what holds the queue and
 * its groups.
 */

import * as v from 'valibot'
import { hasCode, InvalidArgumentError, UnsupportedByStoreError } from '../../core/errors.js'
import { describe } from '../../core/messages/describe.js'
import type { Clock } from '../../core/platform/clock.js'
import type { OwnRates, ThrottleRule } from '../../core/queue/throttle.js'
import { type ThrottleOptions, throttleOf, throttleSchema } from '../../core/queue/throttle-options.js'
import { callForms, callOptions, refuseMore } from '../../core/values/call-check.js'
import { groupMistake, groupNameOf } from '../../core/values/ids.js'
import { parsed } from '../../core/values/option-check.js'
import type { Store } from '../../stores/contract/store.js'
import type { GroupRates, ThrottleState, Throttles } from '../../stores/contract/throttles.js'
import { lookInto } from './queue-looks.js'

/** The current state of a throttle. */
export interface ThrottleStatus extends Omit<ThrottleState, 'throttle' | 'rate'> {
  /**
   * The rules of the throttle. If it is by group: those of the group that was asked for, if it has a rate of its own.
   */
  readonly rules: readonly ThrottleRule[]
  readonly by: 'queue' | 'group'
  readonly scope: string
  /** Beside rules for all jobs: those for each group, or those that the group that was asked for has for itself. */
  readonly eachGroup?: readonly ThrottleRule[]
  /** True if the group that was asked for has a rate of its own. */
  readonly isOwn?: true
  /** The groups that have a rate of their own, in sum; absent if none has. */
  readonly own?: OwnRates
}

/**
 * The parts of a throttle that can change: all except its scope. `by` says which rules, where it has some for all jobs
 * and some for each group; left out: those for all.
 */
export type ThrottleChange = Omit<ThrottleOptions, 'scope'>

/** The group whose rate is to change. */
export interface RateChoice {
  readonly group: string | number
}

interface RatesOptions {
  /** The most rates to return, 1 … 1,000. Default 100. */
  readonly limit?: number
}

/** A group of the queue. */
export interface GroupChoice {
  readonly group: string | number
}

/** A hold of the queue, or of one of its groups; or the pause of a group. */
export interface QueueHold {
  /** Absent: the whole queue is held. */
  readonly group?: string
  /** When it ends by itself, by the clock of this process. Absent: the group is paused until it is resumed. */
  readonly until?: Date
  /** Ms until then; absent likewise. */
  readonly forMs?: number
}

export interface QueueHolds {
  /** First the hold of the queue, then paused groups by name, then held ones, the next to end first. */
  readonly holds: readonly QueueHold[]
  /** How many there are in all. */
  readonly total: number
}

interface HoldsOptions {
  /** Only what holds this group: the hold of the queue, and the group's own. Default: all groups. */
  readonly group?: string | number | undefined
  /** The most holds to return, 1 … 1,000. Default 100. */
  readonly limit?: number | undefined
}

/** The most holds or rates that one call returns. */
const mostListed = 1_000

const checkHolds = callOptions('holds', { group: callForms.own, limit: callForms.own })
const checkRates = callOptions('rates', { limit: callForms.own })
const checkChoice = callOptions('set', { group: callForms.own })

const changeSchema = v.pipe(
  throttleSchema,
  v.check(
    (change) => [change].flat().every(({ scope }) => scope === undefined),
    'must not name `scope`: it is fixed at first use',
  ),
  v.check(
    (change) => new Set([change].flat().map(({ by }) => by)).size <= 1,
    'must have one `by`: change the rules of all jobs and those of each group one after the other',
  ),
)

export class ThrottleAdmin {
  readonly #queue: string
  readonly #look: () => Promise<Store>
  readonly #connect: () => Promise<Store>
  readonly #clock: Pick<Clock, 'now'>

  /**
   * `look` connects without opening a queue, because opening is refused if the declared throttle differs from the
   * stored one.
   * @internal
   */
  constructor(queue: string, look: () => Promise<Store>, connect: () => Promise<Store>, clock: Pick<Clock, 'now'>) {
    this.#queue = queue
    this.#clock = clock
    this.#look = look
    this.#connect = connect
  }

  /**
   * Its rules and, for each, the starts in the window that ends now (`hits`); the time until the next job may start, in
   * ms; and the queues that share it. If it counts by group, the figures are those of `group` (`''`: jobs without one).
   * Without `group`, `groups` is the number of groups that have started jobs. Undefined if the queue has no throttle, or
   * is not stored yet. Throws `UnsupportedByStoreError`.
   */
  async get(group?: string | number): Promise<ThrottleStatus | undefined> {
    const of = this.#groupOf(group)
    const throttles = throttlesOf(await this.#look())
    const state = await lookInto(true, () => throttles.state(this.#queue, of), undefined)
    if (state === undefined) return undefined
    const { throttle, rate, ...counted } = state
    const own =
      rate === undefined ? {} : { [throttle.by === 'group' ? 'rules' : 'eachGroup']: rate, isOwn: true as const }
    return { ...throttle, ...counted, ...own }
  }

  /**
   * Changes the limits for this queue and all queues that share its throttle, at once and in every process; earlier
   * starts still count. Give one window or several; windows that you omit are removed. Where the throttle has rules for
   * all jobs and for each group, it changes those that `by` names, and the others stay. Declare the same limits in your
   * code: a mill that declares others is refused.
   *
   * With `{ group }` it changes the rate of that group alone, which replaces the rules of all groups. It stays until it
   * is set to `'default'`, whatever configurations declare. The throttle must be by group.
   *
   * Throws `ConfigError` with every mistake, `InvalidArgumentError` if the queue has no such throttle,
   * `UnsupportedByStoreError`, `UnknownQueueError`.
   */
  async set(change: ThrottleChange | readonly ThrottleChange[], choice?: RateChoice): Promise<void>
  async set(change: ThrottleChange | readonly ThrottleChange[] | 'default', choice: RateChoice): Promise<void>
  async set(change: unknown, choice: RateChoice | undefined = undefined): Promise<void> {
    if (choice !== undefined) checkChoice(choice)
    const group = this.#groupOf(choice?.group)
    // The name of a group that is missing by mistake must not change the rules of all.
    if (group === undefined && (choice !== undefined || change === 'default'))
      throw new InvalidArgumentError(
        `set(${change === 'default' ? "'default'" : '…'}, { group }) is for one group; got no group. Nothing was changed.`,
      )
    const what = group === undefined ? 'the throttle' : `the rate of group '${group}'`
    const windows = change === 'default' ? undefined : parsed(changeSchema, change, `${what} of queue '${this.#queue}'`)
    const by = windows && [windows].flat()[0]!.by
    if (group !== undefined && by === 'queue')
      throw new InvalidArgumentError("the rate of a group is by group: leave `by: 'queue'` out. Nothing was changed.")
    const rules = windows && throttleOf(this.#queue, windows).rules
    await this.#ask((throttles) =>
      group === undefined ? throttles.set(this.#queue, rules!, by) : throttles.setRate(this.#queue, group, rules),
    )
  }

  /**
   * The groups that have a rate of their own, by name, and how many there are in all. Throws `InvalidArgumentError`,
   * `UnsupportedByStoreError`.
   */
  async rates(options: RatesOptions = {}): Promise<GroupRates> {
    checkRates(options)
    const { limit = 100 } = options
    refuseLimit(limit)
    const throttles = throttlesOf(await this.#look())
    return lookInto(true, () => throttles.rates(this.#queue, limit), { rates: [], total: 0 })
  }

  /**
   * What keeps the queue, or groups of it, from starting jobs: holds, which handlers set by `hold()` and
   * `ctx.hold()`, and pauses of groups. A group that is held and paused is there twice. Works for queues without a
   * throttle too. Throws `InvalidArgumentError`, `UnsupportedByStoreError`.
   */
  async holds(options: HoldsOptions = {}): Promise<QueueHolds> {
    checkHolds(options)
    const { limit = 100 } = options
    const of = this.#groupOf(options.group)
    refuseLimit(limit)
    const query = { limit, ...(of === undefined ? {} : { groups: [of] }) }
    const throttles = throttlesOf(await this.#look())
    const { holds, total } = await lookInto(true, () => throttles.holds(this.#queue, query), { holds: [], total: 0 })
    const now = this.#clock.now()
    return {
      holds: holds.map((hold) => (hold.forMs === undefined ? hold : { ...hold, until: new Date(now + hold.forMs) })),
      total,
    }
  }

  /**
   * Ends the hold of `group` before its time; without `group` that of the queue, and those of all its groups. Jobs that
   * waited for it start at once, as far as limits permit. Pauses stay: `queue.resume()` ends them. Resolves with the
   * number of holds that it ended. Throws `InvalidArgumentError`, `UnsupportedByStoreError`, `UnknownQueueError`.
   */
  async release(group?: string | number): Promise<number> {
    const of = this.#groupOf(group)
    return this.#ask((throttles) => throttles.release(this.#queue, of))
  }

  /** @internal */
  async pauseGroup(choice: GroupChoice): Promise<void> {
    const group = this.#chosenGroup(choice, 'pause')
    await this.#ask((throttles) => throttles.pause(this.#queue, group))
  }

  /** @internal */
  async resumeGroup(choice: GroupChoice): Promise<void> {
    const group = this.#chosenGroup(choice, 'resume')
    await this.#ask((throttles) => throttles.resume(this.#queue, group))
  }

  /** Only a group that has a name: jobs without one are paused with their queue. */
  #chosenGroup(choice: unknown, call: string): string {
    const isChoice = typeof choice === 'object' && choice !== null && Object.keys(choice).join() === 'group'
    const group = isChoice ? this.#groupOf(Reflect.get(choice, 'group')) : undefined
    if (group !== undefined && group !== '') return group
    throw new InvalidArgumentError(
      `${call}() takes nothing, for the whole queue, or { group }, with the name of a group; got ${describe(choice)}.`,
    )
  }

  /** For a change: without opening the queue, but a queue that the store does not have yet is made first. */
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

refuseMore('throttle.', ThrottleAdmin.prototype, {
  promised: { get: 1, set: 2, rates: 1, holds: 1, release: 1 },
})

function refuseLimit(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > mostListed)
    throw new InvalidArgumentError(`limit must be a whole number from 1 to ${mostListed}; got ${describe(limit)}.`)
}

function throttlesOf({ throttles, traits }: Store): Throttles {
  if (throttles !== undefined) return throttles
  throw new UnsupportedByStoreError(traits.name, 'throttles', 'Use a store with throttles, such as sqlite:.')
}
