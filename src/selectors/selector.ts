/** A selector: the order in which a worker tries its queues, drawn anew for every claim. */

import type { Random } from '../core/platform/clock.js'

/** A queue as a selector sees it. */
export interface Candidate {
  readonly name: string
  /** Lottery tickets, 1 … 100. */
  readonly weight: number
  /** Ms since its oldest ready job was due; absent where none is ready or nobody asked. */
  readonly headAgeMs?: number
}

/**
 * The names in the order the claim should try them, each at most once. Names that are left out are not tried this time.
 * `queues` holds those that the worker serves and has not found empty since its last grant or rest.
 * Whether a queue is empty is found by the claim itself, never asked beforehand. May be the user's own.
 */
export interface Selector {
  (queues: readonly Candidate[], random: Random): readonly string[]
  /** Only where this is true does the worker ask the store for `headAgeMs`. */
  readonly needsHeads?: boolean
}
