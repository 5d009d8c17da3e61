/** The due ticks of a schedule: which of them are enqueued, which are left out, and when the next is. Pure. */

import type { Ticks } from './schedule-rule.js'

/** What becomes of ticks that nobody enqueued in time: none of them runs, the latest does, or all do. */
export type OnMissed = 'skip' | 'latest' | 'all'
/** Whether a tick is enqueued while the job of the one before waits or runs. */
export type Overlap = 'allow' | 'skip'

/** A tick that is later than this was missed: no process that could enqueue it was there. A lead that died is replaced sooner. */
const punctualMs = 60_000
/** Most ticks that are enqueued after they were missed, and most that are counted. */
const mostMissed = 1_000

export interface DueTicks {
  /** To be enqueued, the earliest first. */
  readonly ticks: readonly number[]
  /** The last that is due, be it enqueued or not. */
  readonly latestAt: number
  /** How many are left out; 1,000 stands for as many or more. */
  readonly leftOut: number
  /** Whether these were missed: nobody was there to enqueue them. Else they are left out for each other's sake. */
  readonly areMissed: boolean
  /** The first that is not due. */
  readonly nextAt: number | undefined
}

/** `dueAt`: the first of them, which is not after `now`. */
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
    // Each but the last would be the reason to skip the next.
    if (onMissed !== 'all' || policy.overlap === 'skip') return [latest]
    return lastOf(ticks, dueAt, now)
  }
}

/** All from `fromAt` to `now`, of more than `mostMissed` the last. Looks back ever further, as it is not known how dense they are. */
function lastOf(ticks: Ticks, fromAt: number, now: number): number[] {
  for (let backMs = 2 * punctualMs; ; backMs *= 2) {
    const sinceAt = Math.max(fromAt, now - backMs)
    const found: number[] = []
    for (let at = ticks.next(sinceAt - 1); at !== undefined && at <= now; at = ticks.next(at)) found.push(at)
    if (sinceAt === fromAt || found.length >= mostMissed) return found.slice(-mostMissed)
  }
}

/** How many there are from `fromAt` on before `toAt`, at most `mostMissed`. */
function countBetween(ticks: Ticks, fromAt: number, toAt: number): number {
  let count = 0
  for (let at: number | undefined = fromAt; at !== undefined && at < toAt && count < mostMissed; at = ticks.next(at))
    count += 1
  return count
}
