/** The limits of a queue that hold over all processes, apart from its throttle. The store has them. */

/** The most jobs that run at once: of the whole queue, of each of its groups, or both. */
export type MaxRunning = number | { readonly perGroup: number; readonly total?: number }

/** A retention: for how long, and how many; an absent number sets no limit. */
export interface Kept {
  readonly ageMs?: number
  readonly count?: number
}

/** An absent limit has not been said: it stays as it is stored. `'none'`: there shall be no limit. */
export interface QueueLimits {
  readonly maxRunning?: MaxRunning | 'none'
  /** The most waiting jobs; in an ordered queue the most waiting payloads. */
  readonly maxPending?: number | 'none'
  readonly maxCrashes?: number
  /** How many results are kept; each settle brings the age to which its result is kept. */
  readonly resultsCount?: number | 'none'
  /** How long dead jobs are kept, and how many. `{}`: until they are deleted. */
  readonly dead?: Kept
}
