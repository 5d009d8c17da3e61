/**
 * The counter of a throttle: the starts and grids that count together, and the decision how many jobs may start now.
 * Pure.
 */

import { longestCountedMs, type ThrottleRule } from '../../../core/queue/throttle.js'
import { firstGrid, type Grid, gridAfter, gridAtRest, permitsOf } from './grid.js'
import { logAfter, type StartLog, sightOf } from './start-log.js'

export interface Counter {
  readonly log: StartLog
  /** One for each rule. */
  readonly grids: readonly Grid[]
}

interface Decision {
  /** How many of the wanted jobs may start. */
  readonly granted: number
  /** Ms until one may start, if none may now; otherwise 0. */
  readonly forMs: number
  /** The counter after they have started. */
  readonly state: Counter
}

export function firstCounter(rules: readonly ThrottleRule[]): Counter {
  return { log: [], grids: rules.map(() => firstGrid) }
}

/** The counter as it is now: one without a start in the longest window equals none. */
export function counterAt(counter: Counter, rules: readonly ThrottleRule[], now: number): Counter {
  const last = counter.log.at(-1)
  return last === undefined || last.at < now - longestCountedMs(rules) ? firstCounter(rules) : counter
}

/** How many jobs may start now, as far as every rule permits, and, if none may, the time until one may. */
export function permitted({ log, grids }: Counter, rules: readonly ThrottleRule[], now: number) {
  const permits = rules.map((rule, i) => permitsOf(rule, grids[i]!, sightOf(rule, log, now), now))
  return {
    permits: Math.min(...permits.map((one) => one.permits)),
    forMs: Math.max(...permits.map((one) => one.forMs)),
  }
}

/** The counter after `count` jobs have started, at least one; they may begin `lateMs` after the spread. */
export function counterAfter(
  { log, grids }: Counter,
  rules: readonly ThrottleRule[],
  now: number,
  count: number,
  lateMs = 0,
): Counter {
  return {
    log: logAfter(log, count, longestCountedMs(rules), now, lateMs),
    grids: rules.map((rule, i) => gridAfter(rule, grids[i]!, sightOf(rule, log, now), count, now)),
  }
}

/** The counter once nothing is left that could start; also after a change of the rules. */
export function counterAtRest({ log }: Pick<Counter, 'log'>, rules: readonly ThrottleRule[]): Counter {
  return { log, grids: rules.map((rule) => gridAtRest(rule, log.at(-1)?.at)) }
}

/**
 * How many of `want` jobs may start at `now`, of the `ready` ones that exist; and the counter afterwards. `now` is
 * never before the last start of the counter.
 */
export function decide(
  before: Counter,
  rules: readonly ThrottleRule[],
  now: number,
  want: number,
  ready: number,
): Decision {
  const state = counterAt(before, rules, now)
  const { permits, forMs } = permitted(state, rules, now)
  const granted = Math.max(0, Math.min(want, ready, permits))
  const after = granted > 0 ? counterAfter(state, rules, now, granted) : state
  return { granted, forMs, state: ready - granted > 0 ? after : counterAtRest(after, rules) }
}
