/** The log of starts: when, and how many, jobs of one scope, or of one of its groups, were permitted to start. Pure. */

import { countedMs, type ThrottleRule } from '../../../core/queue/throttle.js'
import type { Sight } from './grid.js'

export interface Starts {
  /** From when on they count, on the store's clock, in ms: later than their grant if they may be late. */
  readonly at: number
  readonly count: number
}

/** Oldest first, each instant once. */
export type StartLog = readonly Starts[]

/**
 * A rule's view of the log. A start counts until it is older than the window, so that no closed window ever holds more
 * than the limit.
 */
export function sightOf(rule: ThrottleRule, log: StartLog, now: number): Sight {
  const { limit, elasticBuffer = 0 } = rule
  const forMs = countedMs(rule)
  const seen = log.filter(({ at }) => at >= now - forMs)
  return {
    hits: seen.reduce((sum, { count }) => sum + count, 0),
    opensAt: fewerFrom(limit, forMs, log),
    catchesUpAt: fewerFrom(limit - elasticBuffer, forMs, log),
  }
}

/** The instant from which on the window holds fewer than `most` of the starts: -Infinity if it never held as many. */
function fewerFrom(most: number, forMs: number, log: StartLog): number {
  let later = 0
  for (const { at, count } of log.toReversed()) {
    later += count
    if (later >= most) return at + forMs + 1
  }
  return Number.NEGATIVE_INFINITY
}

/**
 * The log with `count` more starts, and without those that are outside every rule's window. Starts that may be late
 * count from the latest instant on, and no start counts from before the one that came before it.
 */
export function logAfter(log: StartLog, count: number, forMs: number, now: number, lateMs = 0): StartLog {
  const seen = log.filter(({ at }) => at >= now - forMs)
  const last = seen.at(-1)
  const at = Math.max(now + lateMs, last?.at ?? now)
  if (last?.at === at) return [...seen.slice(0, -1), { at, count: last.count + count }]
  return [...seen, { at, count }]
}
