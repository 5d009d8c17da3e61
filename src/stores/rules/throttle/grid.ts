/**
 * The grid of a throttle's rule: the grid place of the last start, and whether the rule may catch up. The grid and the
 * rule's sight of the log decide what a rule permits. Pure; every store decides by these functions, or by a translation
 * of them that is tested against them. Instants are ms on the store's clock. Places on the grid are whole µs, so that
 * every store and every language computes the same.
 */

import { countedMs, type ThrottleRule } from '../../../core/queue/throttle.js'

export interface Grid {
  /** The grid place of the last start, in µs. Absent if nothing has started yet. */
  readonly slotUs?: number
  /**
   * Starts since there was last nothing to start, at most `limit`: with that many, a counter that fell behind may catch
   * up.
   */
  readonly credit: number
}

/** A rule's view of the log of starts. */
export interface Sight {
  /** Starts in the closed window that ends now. */
  readonly hits: number
  /** The instant from which on the window holds fewer starts than the limit: -Infinity if it always did. */
  readonly opensAt: number
  /** The instant from which on more than the buffer are unused, if the rule has a buffer. */
  readonly catchesUpAt: number
}

export const firstGrid: Grid = { credit: 0 }

/** The distance between two places of the grid; fractions of a µs are dropped. */
function spacingUs(rule: ThrottleRule): number {
  return Math.max(1, Math.floor((countedMs(rule) * 1_000) / rule.limit))
}

/** How many jobs may start now, and, if none may, the time until one may: by the window first, then by the grid. */
export function permitsOf(
  rule: ThrottleRule,
  { slotUs, credit }: Grid,
  { hits, opensAt, catchesUpAt }: Sight,
  now: number,
): { readonly permits: number; readonly forMs: number } {
  const { limit, moderate, elasticBuffer } = rule
  const room = limit - hits
  if (!moderate || limit === 1) return room > 0 ? { permits: room, forMs: 0 } : { permits: 0, forMs: opensAt - now }
  const mayCatchUp = elasticBuffer !== undefined && credit >= limit
  if (mayCatchUp && room > elasticBuffer) return { permits: room - elasticBuffer, forMs: 0 }
  const leftUs = slotUs === undefined ? 0 : slotUs + spacingUs(rule) - now * 1_000
  if (room > 0 && leftUs <= 0) return { permits: 1, forMs: 0 }
  const evenly = Math.max(Math.ceil(leftUs / 1_000), opensAt - now)
  return { permits: 0, forMs: mayCatchUp ? Math.min(evenly, catchesUpAt - now) : evenly }
}

/**
 * The grid after `starts` jobs have started; `sight` is the one before them. A late start takes the latest place of the
 * grid, so that the next may come that much sooner. If the window held the start back, the grid begins anew there.
 */
export function gridAfter(
  rule: ThrottleRule,
  { slotUs, credit: before }: Grid,
  { opensAt }: Sight,
  starts: number,
  now: number,
): Grid {
  const { limit, moderate } = rule
  if (!moderate || limit === 1) return firstGrid
  const credit = Math.min(limit, before + starts)
  const nowUs = now * 1_000
  // Nothing was there to start before: the start is not late, and the grid begins with it.
  if (slotUs === undefined || before === 0) return { slotUs: nowUs, credit }
  const spacing = spacingUs(rule)
  const dueUs = Math.max(slotUs + spacing, opensAt * 1_000)
  // It catches up: the grid stays where it is.
  if (nowUs < dueUs) return { slotUs, credit }
  return { slotUs: dueUs + Math.floor((nowUs - dueUs) / spacing) * spacing, credit }
}

/** The grid once there is nothing to start: missed places and late starts no longer count. */
export function gridAtRest({ moderate, limit }: ThrottleRule, lastAt: number | undefined): Grid {
  if (lastAt === undefined || !moderate || limit === 1) return firstGrid
  return { slotUs: lastAt * 1_000, credit: 0 }
}
