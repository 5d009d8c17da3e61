/**
 * One throttle of the memory store: the starts in its scope, by group if it counts by group, and the starts that it
 * permits.
 */

import { allRules, type Throttle, type ThrottleRule } from '../../../core/queue/throttle.js'
import type { QueueBasis } from '../../contract/queue-settings.js'
import { longestOf, ownAfter } from '../../rules/throttle/own-rates.js'
import { sightOf } from '../../rules/throttle/start-log.js'
import {
  type Counter,
  counterAfter,
  counterAt,
  counterAtRest,
  firstCounter,
  permitted,
} from '../../rules/throttle/throttle-counter.js'
import {
  firstRecovery,
  idleBefore,
  ownQuietUntil,
  type Recovery,
  recovered,
  recoveredCounter,
} from '../../rules/throttle/throttle-recovery.js'
import { groupIn, rulesOfSubject, subjectOf } from '../../rules/throttle/throttle-subjects.js'
import type { MemoryJob } from './memory-job.js'
import type { MemoryLanes } from './memory-lanes.js'
import type { SortedList } from './sorted-list.js'

/** A shard of a queue, as its limits know it. */
export interface LimitedShard {
  readonly settings: QueueBasis
  readonly isStopped: boolean
  readonly ready: SortedList<MemoryJob>
  readonly running: SortedList<MemoryJob>
  lane(group: string): readonly MemoryJob[]
  readonly lanes: Pick<MemoryLanes, 'look'>
  reopen(): void
}

/** A counter, with the recovery under which it was written. */
interface WrittenCounter {
  readonly counter: Counter
  readonly count: number
  readonly shiftMs: number
}

export class MemoryThrottle {
  #told: Throttle
  /** The limits of the queues that share it. */
  readonly limits = new Set<{ readonly shards: readonly LimitedShard[] }>()
  readonly #counters = new Map<string, WrittenCounter>()
  /** The rules of groups that have some of their own. */
  readonly rates = new Map<string, readonly ThrottleRule[]>()
  #recovery: Recovery | undefined

  constructor(told: Throttle) {
    this.#told = told
  }

  get told(): Throttle {
    return this.#told
  }

  rulesOf(subject: string): readonly ThrottleRule[] {
    return rulesOfSubject(this.#told, subject, (group) => this.rateOf(group))
  }

  /** The rules that this group has for itself. */
  rateOf(group: string): readonly ThrottleRule[] | undefined {
    return this.rates.get(group)
  }

  /** All shards that it limits. */
  get sharing(): LimitedShard[] {
    return [...this.limits].flatMap(({ shards }) => shards)
  }

  get recovery(): Recovery | undefined {
    return this.#recovery
  }

  /** Sets other rules: the starts stay, as far as they are known, and the grids begin anew. */
  replaceRules(rules: readonly ThrottleRule[], by = this.#told.by): void {
    this.#told = by === this.#told.by ? { ...this.#told, rules } : { ...this.#told, eachGroup: rules }
    for (const subject of this.#counters.keys()) this.#beginGrids(subject)
  }

  /** The same for the rules of one group; `undefined`: it goes by those of all. */
  setRate(group: string, rules: readonly ThrottleRule[] | undefined): void {
    const { own: before, ...told } = this.#told
    const own = ownAfter(before, this.rates.has(group), rules)
    this.#told = { ...told, ...(own === undefined ? {} : { own }) }
    if (rules === undefined) this.rates.delete(group)
    else this.rates.set(group, rules)
    this.#beginGrids(subjectOf(this.#told, group))
  }

  #beginGrids(subject: string): void {
    const written = this.#counters.get(subject)
    if (written === undefined) return
    this.#counters.set(subject, { ...written, counter: counterAtRest(written.counter, this.rulesOf(subject)) })
  }

  /** Notes that the store may have been restarted, or its clock set back. */
  follow(now: number, run: string): void {
    this.#arm(now, run)
  }

  /** How many jobs may start, and, if none may, the time until one may. */
  permits(subject: string, now: number, run: string): { readonly permits: number; readonly forMs: number } {
    const at = this.#arm(now, run)
    const quietForMs = this.quietForMs(at, subject)
    const { permits, forMs } = permitted(this.counter(subject, at), this.rulesOf(subject), at)
    if (quietForMs > 0) return { permits: 0, forMs: Math.max(quietForMs, forMs) + at - now }
    return { permits, forMs: permits > 0 ? 0 : forMs + at - now }
  }

  /** Notes that `count` jobs were taken, which may be late, and whether anything is left that could start. */
  started(subject: string, count: number, hasMore: boolean, now: number, lateMs = 0): void {
    const at = this.#instant(now)
    const rules = this.rulesOf(subject)
    this.#recovery = { ...this.#recovery!, lastAt: at }
    const after = counterAfter(this.counter(subject, at), rules, at, count, lateMs)
    this.#write(subject, hasMore ? after : counterAtRest(after, rules))
  }

  /** Nothing is left that could start. */
  rests(subject: string, now: number): void {
    const at = this.#instant(now)
    if (this.#counters.has(subject))
      this.#write(subject, counterAtRest(this.counter(subject, at), this.rulesOf(subject)))
  }

  /** Starts in each window that ends now. */
  hits(subject: string, now: number): number[] {
    const at = this.#instant(now)
    const { log } = this.counter(subject, at)
    return this.rulesOf(subject).map((rule) => sightOf(rule, log, at).hits)
  }

  /** Ms until one more may start, as far as known without asking whether the store was restarted. */
  waitMs(subject: string, now: number): number {
    const at = this.#instant(now)
    const { permits, forMs } = permitted(this.counter(subject, at), this.rulesOf(subject), at)
    return Math.max(this.quietForMs(now, subject), permits > 0 ? 0 : forMs + at - now)
  }

  /** For how long nothing starts after a restart: of any group, or of this one. */
  quietForMs(now: number, subject?: string): number {
    const group = subject === undefined ? undefined : groupIn(this.#told, subject)
    const own = group === undefined ? undefined : this.rateOf(group)
    const until =
      own === undefined || this.#recovery === undefined
        ? this.#recovery?.quietUntil
        : ownQuietUntil(this.#recovery, own)
    return Math.max(0, (until ?? now) - now)
  }

  /** The subjects with a start that may still count by some rules of the throttle. */
  subjects(now: number): string[] {
    const recovery = this.#recovery
    if (recovery === undefined) return []
    const edge =
      idleBefore(recovery, longestOf(allRules(this.#told), this.#told.own), this.#instant(now)) - recovery.shiftMs
    return [...this.#counters].flatMap(([subject, { counter, shiftMs }]) => {
      const last = counter.log.at(-1)
      return last !== undefined && last.at - shiftMs >= edge ? [subject] : []
    })
  }

  /** The number of groups among them. */
  groups(now: number): number {
    return this.subjects(now).filter((subject) => groupIn(this.#told, subject) !== undefined).length
  }

  /** The present counter. */
  counter(subject: string, at: number): Counter {
    const written = this.#counters.get(subject)
    const rules = this.rulesOf(subject)
    if (written === undefined) return firstCounter(rules)
    return counterAt(recoveredCounter(written.counter, rules, written, this.#recovery!), rules, at)
  }

  #write(subject: string, counter: Counter): void {
    const { count, shiftMs } = this.#recovery!
    this.#counters.set(subject, { counter, count, shiftMs })
  }

  /** The instant that counts: a clock that was set back a little stands still. */
  #instant(now: number): number {
    return Math.max(now, this.#recovery?.lastAt ?? now)
  }

  /** The instant that counts. */
  #arm(now: number, run: string): number {
    this.#recovery =
      this.#recovery === undefined ? firstRecovery(run, now) : recovered(this.#recovery, allRules(this.#told), run, now)
    return this.#instant(now)
  }
}
