/** The canonical state as it is compared with a store that tells by the clock: see `ByClock`. */

import { dueAt, stampOf } from '../../stores/rules/sequence.js'
import type { CanonicalEntry, CanonicalJob, CanonicalState } from './canonical-state.js'

/**
 * A lane gets and loses its turn, and is shut, when a claim looks at it: claims show whose turn it is, and what a limit denies.
 * Of fences only their growth is compared, which the audit shows, and of places the ms: what came in the same ms has its order,
 * which claims and listings show. What waits behind a running job is ready as soon as it is due.
 */
export function stateByClock(state: CanonicalState): CanonicalState {
  const queues = state.queues.map((queue) => ({
    ...queue,
    lanes: { ...queue.lanes, turns: [], shut: [] },
    jobs: queue.jobs.map((job) => jobByClock(job, state.now)),
  }))
  return { ...state, queues }
}

function jobByClock({ stamp, claim, payloads, successor, ...job }: CanonicalJob, now: number): CanonicalJob {
  return {
    ...job,
    stamp: wholeMs(stamp),
    payloads: payloads?.map(entryByClock) ?? null,
    claim: claim && { ...claim, fence: 0 },
    successor: successor && {
      ...successor,
      stamp: wholeMs(successor.stamp),
      payloads: successor.payloads.map(entryByClock),
      isReady: successor.isReady || dueAt(successor.stamp) <= now,
    },
  }
}

function entryByClock(entry: CanonicalEntry): CanonicalEntry {
  return { ...entry, score: scoreByClock(entry.score) }
}

/** A default score is the instant of the push, in ms, and a fraction that the order of payloads shows. */
export function scoreByClock(score: number): number {
  return score < leastDefaultScore ? score : Math.floor(score)
}

/** No user of a sequence gives a larger score. */
const leastDefaultScore = 1_000_000_000_000

function wholeMs(stamp: number): number {
  return stampOf(dueAt(stamp))
}
