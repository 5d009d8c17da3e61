/** The due ticks of a schedule: the ticks to enqueue, the ticks to leave out, and the next one. Pure. */

import type { Ticks } from './schedule-rule.js'

/** The policy for ticks that nobody enqueued in time: none of them runs, the latest does, or all do. */
export type OnMissed = 'skip' | 'latest' | 'all'
/** Whether a tick is enqueued while the job of the tick before waits or runs. */
export type Overlap = 'allow' | 'skip'

/** A later tick counts as missed: no process was there to enqueue it. A dead lead is replaced sooner than this. */
export const punctualMs = 60_000
/** The most missed ticks that are enqueued, and the most that are counted. */
const mostMissed = 1_000

export interface DueTicks {
  /** The ticks to enqueue, the earliest first. */
  readonly ticks: readonly number[]
  /** The last due tick, whether it is enqueued or not. */
  readonly latestAt: number
  /** The number of ticks left out; 1,000 means as many or more. */
  readonly leftOut: number
  /**
   * Whether these ticks were missed, because nobody was there to enqueue them. Otherwise they are left out because of
   * the overlap.
   */
  readonly areMissed: boolean
  /** The first tick that is not due. */
  readonly nextAt: number | undefined
}

/** The due ticks at `now`. `dueAt`: the first of them, which is not after `now`. */
export function dueTicks(
  ticks: Ticks,
  policy: { readonly onMissed: OnMissed; readonly overlap: Overlap },
  dueAt: number,
  now: number,
): DueTicks {
  const areMissed = now - dueAt > punctualMs
  const nextAt = ticks.next(now)
  const latest = ticks.latest(now, dueAt - 1) ?? dueAt
  const chosen = chosenOf(areMissed ? policy.onMissed : 'all')
  return {
    ticks: chosen,
    latestAt: latest,
    leftOut: countBetween(ticks, dueAt, chosen[0] ?? now + 1),
    areMissed,
    nextAt,
  }

  function chosenOf(onMissed: OnMissed): number[] {
    if (onMissed === 'skip' && now - latest > punctualMs) return []
    // With `overlap: 'skip'` each tick but the last would only cause the next one to be skipped.
    if (onMissed !== 'all' || policy.overlap === 'skip') return [latest]
    return lastOf(ticks, dueAt, now)
  }
}

/**
 * All ticks from `fromAt` to `now`; if there are more than `mostMissed`, the last ones. It looks back further and
 * further, because the density of the ticks is not known.
 */
function lastOf(ticks: Ticks, fromAt: number, now: number): number[] {
  for (let backMs = 2 * punctualMs; ; backMs *= 2) {
    const sinceAt = Math.max(fromAt, now - backMs)
    const found: number[] = []
    for (let at = ticks.next(sinceAt - 1); at !== undefined && at <= now; at = ticks.next(at)) found.push(at)
    if (sinceAt === fromAt || found.length >= mostMissed) return found.slice(-mostMissed)
  }
}

/** The number of ticks from `fromAt` on before `toAt`, at most `mostMissed`. */
function countBetween(ticks: Ticks, fromAt: number, toAt: number): number {
  let count = 0
  for (let at: number | undefined = fromAt; at !== undefined && at < toAt && count < mostMissed; at = ticks.next(at))
    count += 1
  return count
}
