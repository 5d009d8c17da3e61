/**
 * The rates that single groups of a throttle have for themselves: which rules a group goes by, and what a throttle must
 * know of all of them. Pure; Lua has a translation.
 */

import { InvalidArgumentError } from '../../../core/errors.js'
import {
  groupRules,
  leastSpreadOf,
  longestCountedMs,
  type OwnRates,
  type Throttle,
  type ThrottleRule,
} from '../../../core/queue/throttle.js'

/**
 * The sum of own rates after one group got other rules; `undefined`: it goes by those of all groups. Bounds only grow
 * while there are any: to look for the next smaller one would mean to go past all of them.
 */
export function ownAfter(
  own: OwnRates | undefined,
  had: boolean,
  rules: readonly ThrottleRule[] | undefined,
): OwnRates | undefined {
  const groups = (own?.groups ?? 0) + (rules === undefined ? 0 : 1) - (had ? 1 : 0)
  if (groups === 0) return undefined
  const longestMs = Math.max(own?.longestMs ?? 0, rules === undefined ? 0 : longestCountedMs(rules))
  const least = Math.min(own?.leastSpreadMs ?? Number.POSITIVE_INFINITY, leastSpreadOf(rules ?? []))
  return { groups, longestMs, ...(Number.isFinite(least) ? { leastSpreadMs: least } : {}) }
}

/** Throws `InvalidArgumentError` if the throttle of the queue does not hold for each group: only such groups have rates. */
export function refuseRates(queue: string, throttle: Throttle | undefined): void {
  if (throttle !== undefined && groupRules(throttle) !== undefined) return
  const is = throttle === undefined ? 'has no throttle' : 'has one throttle for all of its jobs together'
  throw new InvalidArgumentError(
    `queue '${queue}' ${is}: a group has a rate of its own only beside rules with \`by: 'group'\`, which are those of the others.`,
  )
}

/** How long any start of the throttle counts, in ms. */
export function longestOf(rules: readonly ThrottleRule[], own: OwnRates | undefined): number {
  return Math.max(longestCountedMs(rules), own?.longestMs ?? 0)
}

/** The stored text. */
export function ownText(own: OwnRates | undefined): string {
  return own === undefined ? '' : [own.groups, own.longestMs, own.leastSpreadMs ?? ''].join(' ').trimEnd()
}

/** None for an empty, missing or damaged text. */
export function ownIn(text: string | null | undefined): OwnRates | undefined {
  const [, groups, longestMs, leastSpreadMs] = /^(\d+) (\d+)(?: (\d+))?$/.exec(text ?? '') ?? []
  if (groups === undefined) return undefined
  return {
    groups: Number(groups),
    longestMs: Number(longestMs),
    ...(leastSpreadMs === undefined ? {} : { leastSpreadMs: Number(leastSpreadMs) }),
  }
}
