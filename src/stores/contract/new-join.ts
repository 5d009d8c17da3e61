/** A new join, and the places of new jobs in the sets of joins. `joins.ts` says what they mean. */

/**
 * What the end of a member means if it does not complete. `'fail'`: the join is dead. `'go-on'`: every end counts.
 * `'hold'`: the join waits until a dead member is revived and completes; other ends make it dead.
 */
export type OnDead = 'fail' | 'go-on' | 'hold'

/** How a member ended. A deleted one is `'cancelled'`. */
export type Fate = 'completed' | 'dead' | 'cancelled' | 'expired'

/** The part of a set that its members know too. */
interface SetRules {
  readonly onDead: OnDead
  /** Whether results and errors are kept for the join. Fates are kept in any case. */
  readonly keepsResults: boolean
}

/** A set of a new join. */
export interface NewSet extends SetRules {
  readonly name: string
  /** The queue of its members: plain. */
  readonly queue: string
  /** The id of its one member, or the beginning of the ids of its members (`rules/join-rules`, `memberId`). */
  readonly ids: string
  readonly isMany: boolean
  /** The number of its members. Absent: the set is open until `Joins.seal`. */
  readonly size?: number
}

export interface NewJoin {
  /** At least one. */
  readonly sets: readonly NewSet[]
  /** Ms from now until the join is dead as `join-late` if it still waits. */
  readonly withinMs?: number
  /** Ms from now until the join is dead as `join-never-sealed` if a set is still open. */
  readonly sealWithinMs: number
  /** If a member makes the join dead, the others are cancelled, step by step, by `sweep`. */
  readonly cancelsRest?: true
}

/** The place of a job in a set of a join. A job has at most 64 of them. */
export interface MemberOf extends SetRules {
  readonly join: { readonly queue: string; readonly id: string }
  readonly set: string
  readonly number: number
}
