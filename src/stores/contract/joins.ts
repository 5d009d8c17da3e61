/**
 * The facet `joins`: plain jobs that wait for the ends of others, their members.
 *
 * A join has sets of members, and the members of a set are numbered from 0. The store keeps *who* has ended, not how
 * many: a report that comes twice changes nothing. Every end of a member reports, in the same step: it completed, died,
 * was cancelled or deleted, or expired. A retry, a release, a crash or a revive is no end. What a report means for the
 * join is in `rules/join-rules`. A claim reports what it finds to have ended behind its grants: it grants no join that is
 * ready because of that, and rings for it.
 *
 * A join waits (state `waiting`) until every set is sealed and nobody in it is outstanding. It then becomes ready in the
 * place of its own enqueue, or is scheduled by its `delayMs` or `runAt`; `delayMs` and `expiresMs` count from then.
 * Until then nothing claims it, and it is in no lane and takes no permit; it counts as pending. It is dead as soon as it
 * cannot become ready.
 *
 * In a store whose parts have transactions of their own, reports and `sweep` may take effect a moment after the end:
 * before the call that ended the member resolves, or, if that process dies, with a later `sweep`.
 */

import type { Payload } from '../../core/values/codec.js'
import type { JobKey } from './job-records.js'
import type { EnqueueCall, Enqueued } from './new-job.js'
import type { Fate, NewSet } from './new-join.js'

/** A set of a stored join. */
export interface StoredSet extends NewSet {
  /** Members added so far. A number below this is not added again. */
  readonly added: number
  /** Members by their fates. */
  readonly counts: Readonly<Record<Fate, number>>
  /** The number of the first member that was added and has not ended, or is held. Absent: there is none. */
  readonly oldest?: number
}

export interface StoredJoin {
  readonly sets: readonly StoredSet[]
  /** When the join dies if it still waits. Absent: it waits no more, or without a bound. */
  readonly waitsUntil?: number
}

/** The end of a member. */
export interface MemberEnd {
  readonly number: number
  readonly fate: Fate
  /** Of a completed member, if it returned something and the set keeps results. */
  readonly payload?: Payload
  readonly codec?: string
  /** Of a dead member, if the set keeps results. */
  readonly error?: string
}

/**
 * The outcome for a graph. `'duplicate'`: its first job is there already, or remembered, and nothing was stored. As
 * `refused`: this job was refused so, and nothing is stored.
 */
export type GraphAnswer =
  | { readonly outcome: 'added' | 'duplicate' }
  | {
      readonly outcome: 'refused'
      readonly refused: JobKey
      readonly as: Exclude<Enqueued, 'added' | 'merged' | 'replaced'>
    }

/** The outcome of a seal. */
export type Sealed = 'sealed' | 'dead' | 'gone'

/** A join that died because of its members or of time. */
export interface FailedJoin extends JobKey {
  readonly task: string
  readonly reason: string
}

export interface Joins {
  /**
   * Adds jobs of which some wait for others: at most 1,000, in one call per queue; the first job of the first call is a
   * join and names the graph. All are stored or none. A store whose parts have transactions of their own first adds the
   * joins, open, then the members, and then seals; if the caller dies in between, the joins die as `join-never-sealed`.
   * Sent again it goes on where it was, and adds nobody twice.
   *
   * Members of open sets come by `Store.enqueue`, in the order of their numbers. There too a number that was added
   * before is a `'duplicate'`, even if the call says that its ids are new. A member of a join that is gone is a job like
   * any other.
   */
  enqueue(calls: readonly EnqueueCall[]): Promise<GraphAnswer>
  /**
   * Says how many members the open sets have, by their names: from then on the join may become ready. `'sealed'`: it is so,
   * now or since a call before. `'dead'`: it is so, but the join has died, and waits again only once it is revived.
   * `'gone'`: there is no such join, or it neither waits nor is dead. Throws `InvalidArgumentError` for another number than
   * before, or one below the members already added.
   */
  seal(join: JobKey, sizes: Readonly<Record<string, number>>): Promise<Sealed>
  /** The sets of a join that is not gone: it waits, will run, runs, or is dead. */
  look(join: JobKey): Promise<StoredJoin | undefined>
  /** The ends in a set with numbers from `from` on and below `from + limit`, in this order; none of a join that is gone. */
  ends(join: JobKey, set: string, from: number, limit: number): Promise<MemberEnd[]>
  /**
   * One bounded step of what time or the death of a process leaves to do: joins that wait for too long die, reports that
   * were not delivered are, the rest of the members of a dead join is cancelled where it asks for that. Also returns
   * joins that have died since the last sweep, each once. `worker` calls it about every 5 s, and again while `more`. If
   * another worker has called it in the last few seconds, a store may do nothing.
   */
  sweep(worker: string): Promise<{ readonly failed: readonly FailedJoin[]; readonly more: boolean }>
}
