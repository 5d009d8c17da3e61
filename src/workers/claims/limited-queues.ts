/**
 * The limits of a worker's queues, as far as it must know them: the stored rules, the holds that its own jobs have set,
 * and jobs without a group where each group has a limit of its own.
 */

import type { Events } from '../../core/events.js'
import { allRules, groupRules, leastSpreadOf, type ThrottleRule } from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { Verdict } from '../../runtime/run/verdict.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { SettleAnswer } from '../../stores/contract/settle.js'

/**
 * How often a claimer looks whether a throttle's rules have changed, in ms: with a shorter window handlers may begin less
 * late.
 */
export const limitsMs = 5_000

/** The queues whose ready jobs a limit may deny. The stored limits count, even if this mill declares none. */
export class LimitedQueues {
  #stored: ReadonlyMap<string, StoredQueue> = new Map()

  constructor(stored: readonly StoredQueue[]) {
    this.know(stored)
  }

  /** Replaces the known queues. */
  know(stored: readonly StoredQueue[]): void {
    this.#stored = new Map(stored.map((queue) => [queue.name, queue]))
  }

  /** Whether claimed jobs must start at once: they count as started, or as running, from the claim on. */
  isLimited(queue: string): boolean {
    return this.isThrottled(queue) || this.isBounded(queue)
  }

  /** Whether the queue limits how many of its jobs run. */
  isBounded(queue: string): boolean {
    return this.#stored.get(queue)?.maxRunning !== undefined
  }

  isThrottled(queue: string): boolean {
    return this.#stored.get(queue)?.throttle !== undefined
  }

  /** The limit that holds for each group separately; undefined if none does. */
  limitOfGroups(queue: string): 'throttle' | 'maxRunning' | undefined {
    if (this.groupRulesOf(queue) !== undefined) return 'throttle'
    return typeof this.#stored.get(queue)?.maxRunning === 'object' ? 'maxRunning' : undefined
  }

  /** The rules for all of its jobs together. */
  wholeRulesOf(queue: string): readonly ThrottleRule[] | undefined {
    const throttle = this.#stored.get(queue)?.throttle
    return throttle?.by === 'queue' ? throttle.rules : undefined
  }

  /** The rules for the jobs of each group. */
  groupRulesOf(queue: string): readonly ThrottleRule[] | undefined {
    const throttle = this.#stored.get(queue)?.throttle
    return throttle && groupRules(throttle)
  }

  /**
   * By how much the handlers of this queue may begin unevenly, in ms: as the shortest window allows, even of one group
   * alone. Undefined if the queue has no throttle.
   */
  spreadOf(queue: string): number | undefined {
    const throttle = this.#stored.get(queue)?.throttle
    if (throttle === undefined) return undefined
    return Math.min(leastSpreadOf(allRules(throttle)), throttle.own?.leastSpreadMs ?? Number.POSITIVE_INFINITY)
  }

  /** The queues that share the throttle of this one, including itself. */
  sharing(queue: string): ReadonlySet<string> {
    const scope = this.#stored.get(queue)?.throttle?.scope
    const sharing = [...this.#stored.values()].filter(
      ({ throttle }) => throttle !== undefined && throttle.scope === scope,
    )
    return new Set(sharing.map(({ name }) => name))
  }

  /** Whether a denial for this reason holds for all groups and shards of the queue. */
  isWhole(queue: string, reason: 'throttled' | 'full'): boolean {
    const stored = this.#stored.get(queue)
    if (reason === 'throttled') return stored?.throttle?.by === 'queue' && stored.throttle.eachGroup === undefined
    // An exclusive shard is full because of its own batch.
    return typeof stored?.maxRunning === 'number' && stored.exclusive === 'id'
  }
}

interface GroupHold {
  readonly until: number
  /** The claim whose end brought it, until the store has answered its settle. */
  readonly of: Claim | undefined
  readonly answeredAt: number | undefined
}

/** Beyond this number of groups, those whose holds are over are forgotten at the next one. */
const mostKept = 1_000

/**
 * The groups that jobs of this worker have held: jobs that were claimed before a hold, and have not begun, obey it. Jobs
 * that are claimed later are not of the group, or somebody has ended the hold.
 */
export class HeldGroups {
  readonly #mono: () => number
  readonly #canHold: boolean
  /** Each on its own: a hold that the store refuses takes no other one with it. */
  #holds = new Map<string, readonly GroupHold[]>()

  /** `canHold`: whether the store can hold a group. */
  constructor(mono: () => number, canHold: boolean) {
    this.#mono = mono
    this.#canHold = canHold
  }

  /**
   * The end of this claim holds its group; if it has none, its queue. `answer`: of the store; undefined: the end is about
   * to be sent, or will never be taken.
   */
  onVerdict(claim: Claim, { holdMs }: Pick<Verdict, 'holdMs'>, answer?: SettleAnswer): void {
    if (holdMs === undefined || !this.#canHold) return
    const now = this.#mono()
    const key = keyOf(claim.queue, claim.group)
    const until = now + holdMs
    let holds = (this.#holds.get(key) ?? []).filter((hold) => hold.of !== claim && hold.until > now)
    if (answer === undefined) holds.push({ until, of: claim, answeredAt: undefined })
    if (answer === 'ok') {
      // It holds all that these hold, for as long.
      holds = holds.filter((hold) => hold.answeredAt === undefined || hold.until > until)
      holds.push({ until, of: undefined, answeredAt: now })
    }
    if (this.#holds.size >= mostKept)
      this.#holds = new Map([...this.#holds].filter(([, others]) => others.some(({ until }) => until > now)))
    if (holds.length > 0) this.#holds.set(key, holds)
    else this.#holds.delete(key)
  }

  /** Whether a claim must not begin now. `claimedAt`: when it was sent, like `now` on the monotonic clock. */
  areHolding({ queue, group }: Claim, claimedAt: number, now: number): boolean {
    if (this.#holds.size === 0) return false
    const keys = group === undefined ? [keyOf(queue, undefined)] : [keyOf(queue, undefined), keyOf(queue, group)]
    return keys.some((key) =>
      this.#holds.get(key)?.some(({ until, answeredAt = now }) => until > now && claimedAt <= answeredAt),
    )
  }
}

/** No queue name contains a space. */
function keyOf(queue: string, group: string | undefined): string {
  return group === undefined ? queue : `${queue} ${group}`
}

/**
 * The jobs without a group in queues whose limits hold for each group: together they share the limit of one group. If no
 * task of the queue says a group, that is probably not meant.
 */
export class GrouplessJobs {
  readonly #events: Events
  readonly #registry: Registry
  readonly #limited: LimitedQueues
  readonly #toldOf = new Set<string>()

  constructor({ events }: Pick<Surroundings, 'events'>, registry: Registry, limited: LimitedQueues) {
    this.#events = events
    this.#registry = registry
    this.#limited = limited
  }

  /** Notes claims of one queue, and reports the first without a group. */
  note(claims: readonly Claim[]): void {
    const { queue } = claims[0]!
    const limit = this.#limited.limitOfGroups(queue)
    if (limit === undefined || this.#toldOf.has(queue)) return
    const groupless = claims.find(({ group }) => group === undefined)
    if (groupless === undefined || this.#registry.saysGroups(queue)) return
    this.#toldOf.add(queue)
    this.#events.emit('group.missing', { queue, task: groupless.task, limit })
  }
}
