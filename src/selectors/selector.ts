/** A selector: the order in which a worker tries its queues, determined anew for every claim. */

import type { Random } from '../core/platform/clock.js'

/** A queue as a selector sees it. */
export interface Candidate {
  readonly name: string
  /** Lottery tickets, 1 … 100. */
  readonly weight: number
  /** Ms since its oldest ready job could begin; absent if none is ready or the worker did not ask. */
  readonly headAgeMs?: number
}

/**
 * A function that returns the names in the order in which the claim should try them, each at most once. Names that it
 * leaves out are not tried this time. `queues` holds the queues that the worker serves and has not found empty since
 * its last grant or rest. Only the claim itself finds out whether a queue is empty. You may write your own.
 */
export interface Selector {
  (queues: readonly Candidate[], random: Random): readonly string[]
  /** The worker asks the store for `headAgeMs` only if this is true. */
  readonly needsHeads?: boolean
}
