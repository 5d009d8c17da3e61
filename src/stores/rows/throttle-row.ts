/**
 * The rows of a throttle in a SQL store: of the throttle, of its counters and of their starts, with what they say. Pure.
 */

import { countedMs, rulesIn, type Throttle, type ThrottleRule } from '../../core/queue/throttle.js'
import type { Grid, Sight } from '../rules/throttle/grid.js'
import { ownIn } from '../rules/throttle/own-rates.js'
import type { Starts } from '../rules/throttle/start-log.js'

/** A row of `throttle`. Property names are column names; instants are on the monotonic clock, except `last_wall`. */
export interface ThrottleRow {
  readonly scope: string
  readonly counts_by: Throttle['by']
  /** The `ruleText` of each rule, separated by spaces. */
  rules: string
  /** The same for rules for each group, beside those for all jobs; otherwise null. */
  each_group: string | null
  /** The `ownText` of the rates that groups have for themselves. */
  own: string
  /** How often the rules were changed. */
  epoch: number
  /** Null: nobody has asked yet. */
  run: string | null
  recoveries: number
  recovered_at: number
  shift_ms: number
  last_at: number | null
  last_wall: number | null
  quiet_until: number | null
}

/** The throttle that a row describes. */
export function throttleIn({ scope, counts_by, rules, each_group, own }: ThrottleRow): Throttle {
  const rates = ownIn(own)
  return {
    ...{ scope, by: counts_by, rules: rulesIn(rules) },
    ...(each_group === null ? {} : { eachGroup: rulesIn(each_group) }),
    ...(rates === undefined ? {} : { own: rates }),
  }
}

/** A row of `throttle_counter`. Property names are column names. */
export interface CounterRow {
  readonly tid: number
  base: number
  total: number
  /** Null: no start still counts. */
  last_at: number | null
  /** JSON: place and credit of each grid. */
  grids: string
  epoch: number
  recoveries: number
  shift_ms: number
}

export function gridsIn(text: string): Grid[] {
  return (JSON.parse(text) as [slotUs: number | null, credit: number][]).map(([slotUs, credit]) =>
    slotUs === null ? { credit } : { slotUs, credit },
  )
}

export function gridsText(grids: readonly Grid[]): string {
  return JSON.stringify(grids.map(({ slotUs, credit }) => [slotUs ?? null, credit]))
}

/** The counters of throttles, and their starts. What is written is read again in the same transaction. */
export interface CounterShelf {
  find(scope: string, subject: string): CounterRow | undefined
  /** Writes the counter and returns its row. `before` is undefined for a new one. */
  write(scope: string, subject: string, row: Omit<CounterRow, 'tid'>, before: CounterRow | undefined): CounterRow
  /** How many starts came before the first one at `from` or later; undefined if there is none. */
  firstSeen(tid: number, from: number): number | undefined
  /** When the starts began before which `nth` others or fewer had come. */
  atOf(tid: number, nth: number): number | undefined
  /** Records `count` starts that come after `total` others. `at` is relative to the `base` of the counter. */
  start(tid: number, at: number, total: number, count: number): void
  /** Drops starts that no window sees any more, a bounded number, the oldest first. */
  drop(tid: number, before: number): void
  /** Of the counters that were written under the earliest recovery, the one with the earliest last start. */
  oldest(scope: string): Pick<CounterRow, 'recoveries' | 'shift_ms' | 'last_at'> | undefined
  /** Drops at most `most` counters of a recovery whose last start was before `before`. */
  dropIdle(scope: string, recoveries: number, before: number, most: number): void
  /**
   * The number of counters of the scope that were written under this recovery and have a last start at `from` or later.
   * `except`: not counted; null: all are.
   */
  countSince(scope: string, recoveries: number, from: number, except: string | null): number
  /**
   * The same for counters of earlier recoveries; last starts and `from` are compared on the clock before any recovery.
   */
  countBefore(scope: string, recoveries: number, from: number, except: string | null): number
}

/**
 * The starts of a counter as they look on the present clock: moved by `byMs`, and followed by the charge of a recovery.
 */
export interface Outlook {
  readonly byMs: number
  readonly charge?: Starts
}

/**
 * A rule's view of the starts, by one or two of their rows, as `rules/throttle/start-log` has it. `opensAt` and
 * `catchesUpAt` are computed when read: a rule that has room and keeps no grid does not need them.
 */
export function sightIn(
  starts: Pick<CounterShelf, 'firstSeen' | 'atOf'>,
  { tid, base, total }: CounterRow,
  { byMs, charge }: Outlook,
  rule: ThrottleRule,
  now: number,
): Sight {
  const { limit, elasticBuffer = 0 } = rule
  const forMs = countedMs(rule)
  const offset = base + byMs
  const charged = charge?.count ?? 0
  const first = starts.firstSeen(tid, now - forMs - offset)
  const isChargeSeen = charge !== undefined && charge.at >= now - forMs
  const hits = (first === undefined ? 0 : total - first) + (isChargeSeen ? charged : 0)
  const fewerFrom = (most: number): number => {
    if (charge !== undefined && charged >= most) return charge.at + forMs + 1
    const at = starts.atOf(tid, total + charged - most)
    return at === undefined ? Number.NEGATIVE_INFINITY : at + offset + forMs + 1
  }
  let opensAt: number | undefined
  return {
    hits,
    get opensAt() {
      opensAt ??= fewerFrom(limit)
      return opensAt
    },
    get catchesUpAt() {
      return fewerFrom(limit - elasticBuffer)
    },
  }
}
