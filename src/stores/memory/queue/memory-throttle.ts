/**
 * One throttle of the memory store: the starts in its scope, by group if it counts by group, and the starts that it
 * permits.
 */

import type { Throttle, ThrottleRule } from '../../../core/queue/throttle.js'
import type { QueueBasis } from '../../contract/queue-settings.js'
import { sightOf } from '../../rules/throttle/start-log.js'
import {
  type Counter,
  counterAfter,
  counterAt,
  counterAtRest,
  firstCounter,
  permitted,
} from '../../rules/throttle/throttle-counter.js'
import { firstRecovery, type Recovery, recovered, recoveredCounter } from '../../rules/throttle/throttle-recovery.js'
import type { MemoryJob } from './memory-job.js'
import type { SortedList } from './sorted-list.js'

/** A shard of a queue, as its limits know it. */
export interface LimitedShard {
  readonly settings: QueueBasis
  readonly isStopped: boolean
  readonly ready: SortedList<MemoryJob>
  readonly running: SortedList<MemoryJob>
  lane(group: string): readonly MemoryJob[]
  reopen(): void
}

/** A counter, with the recovery under which it was written. */
interface WrittenCounter {
  readonly counter: Counter
  readonly count: number
  readonly shiftMs: number
}

export class MemoryThrottle {
  readonly scope: string
  readonly by: Throttle['by']
  #rules: readonly ThrottleRule[]
  /** The limits of the queues that share it. */
  readonly limits = new Set<{ readonly shards: readonly LimitedShard[] }>()
  readonly #counters = new Map<string, WrittenCounter>()
  #recovery: Recovery | undefined

  constructor({ scope, by, rules }: Throttle) {
    this.scope = scope
    this.by = by
    this.#rules = rules
  }

  get rules(): readonly ThrottleRule[] {
    return this.#rules
  }

  /** All shards that it limits. */
  get sharing(): LimitedShard[] {
    return [...this.limits].flatMap(({ shards }) => shards)
  }

  get recovery(): Recovery | undefined {
    return this.#recovery
  }

  /** Sets other rules: the starts stay, as far as they are known, and the grids begin anew. */
  replaceRules(rules: readonly ThrottleRule[]): void {
    this.#rules = rules
    for (const [subject, written] of this.#counters)
      this.#counters.set(subject, { ...written, counter: counterAtRest(written.counter, rules) })
  }

  /** Notes that the store may have been restarted, or its clock set back. */
  follow(now: number, run: string): void {
    this.#arm(now, run)
  }

  /** How many jobs may start, and, if none may, the time until one may. */
  permits(subject: string, now: number, run: string): { readonly permits: number; readonly forMs: number } {
    const { at, quietForMs } = this.#arm(now, run)
    const { permits, forMs } = permitted(this.counter(subject, at), this.#rules, at)
    if (quietForMs > 0) return { permits: 0, forMs: Math.max(quietForMs, forMs) + at - now }
    return { permits, forMs: permits > 0 ? 0 : forMs + at - now }
  }

  /** Notes that `count` jobs were taken, which may be late, and whether anything is left that could start. */
  started(subject: string, count: number, hasMore: boolean, now: number, lateMs = 0): void {
    const at = this.#instant(now)
    this.#recovery = { ...this.#recovery!, lastAt: at }
    const after = counterAfter(this.counter(subject, at), this.#rules, at, count, lateMs)
    this.#write(subject, hasMore ? after : counterAtRest(after, this.#rules))
  }

  /** Nothing is left that could start. */
  rests(subject: string, now: number): void {
    const at = this.#instant(now)
    if (this.#counters.has(subject)) this.#write(subject, counterAtRest(this.counter(subject, at), this.#rules))
  }

  /** Starts in each window that ends now. */
  hits(subject: string, now: number): number[] {
    const at = this.#instant(now)
    const { log } = this.counter(subject, at)
    return this.#rules.map((rule) => sightOf(rule, log, at).hits)
  }

  /** Ms until one more may start, as far as known without asking whether the store was restarted. */
  waitMs(subject: string, now: number): number {
    const at = this.#instant(now)
    const { permits, forMs } = permitted(this.counter(subject, at), this.#rules, at)
    return Math.max(this.quietForMs(now), permits > 0 ? 0 : forMs + at - now)
  }

  quietForMs(now: number): number {
    return Math.max(0, (this.#recovery?.quietUntil ?? now) - now)
  }

  /** The subjects with a start in any window. */
  subjects(now: number): string[] {
    const at = this.#instant(now)
    return [...this.#counters.keys()].filter((subject) => this.counter(subject, at).log.length > 0)
  }

  /** The present counter. */
  counter(subject: string, at: number): Counter {
    const written = this.#counters.get(subject)
    if (written === undefined) return firstCounter(this.#rules)
    return counterAt(recoveredCounter(written.counter, this.#rules, written, this.#recovery!), this.#rules, at)
  }

  #write(subject: string, counter: Counter): void {
    const { count, shiftMs } = this.#recovery!
    this.#counters.set(subject, { counter, count, shiftMs })
  }

  /** The instant that counts: a clock that was set back a little stands still. */
  #instant(now: number): number {
    return Math.max(now, this.#recovery?.lastAt ?? now)
  }

  #arm(now: number, run: string): { readonly at: number; readonly quietForMs: number } {
    this.#recovery =
      this.#recovery === undefined ? firstRecovery(run, now) : recovered(this.#recovery, this.#rules, run, now)
    const at = this.#instant(now)
    return { at, quietForMs: Math.max(0, (this.#recovery.quietUntil ?? at) - at) }
  }
}
