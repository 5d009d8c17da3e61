/** The rules of joins: what the end of a member means, when a join is ready, and when it cannot become so any more. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { JobKey } from '../contract/job-records.js'
import type { StoredSet } from '../contract/joins.js'
import type { Fate, NewSet, OnDead } from '../contract/new-join.js'
import { compareBytes } from './byte-order.js'

/** The most bytes of results, as stored, that a join keeps of its members. */
export const mostJoinBytes = 64 * 1_048_576

/** Why a join is dead. */
export const memberDeadReason = 'join-member-dead'
export const lateReason = 'join-late'
export const neverSealedReason = 'join-never-sealed'
export const tooLargeReason = 'join-results-too-large'

/** The id of a member of this set. */
export function memberId({ ids, isMany }: Pick<NewSet, 'ids' | 'isMany'>, number: number): string {
  return isMany ? `${ids}.${number}` : ids
}

/** Whether the job is the member of this number. */
export function isAt(set: Pick<NewSet, 'queue' | 'ids' | 'isMany'>, number: number, { queue, id }: JobKey): boolean {
  return set.queue === queue && memberId(set, number) === id
}

/** The number of the member that has this id; undefined: none has it. Called for each end of a member. */
export function numberOf({ ids, isMany }: Pick<NewSet, 'ids' | 'isMany'>, id: string): number | undefined {
  if (!isMany) return id === ids ? 0 : undefined
  const from = ids.length + 1
  if (id.length <= from || id.charCodeAt(from - 1) !== point || !id.startsWith(ids)) return undefined
  let number = 0
  for (let at = from; at < id.length; at += 1) {
    const digit = id.charCodeAt(at) - zero
    if (digit < 0 || digit > 9 || (digit === 0 && at === from && id.length > from + 1)) return undefined
    number = 10 * number + digit
  }
  return number
}

const [point, zero] = ['.', '0'].map((sign) => sign.charCodeAt(0)) as [number, number]

/**
 * What an end does to the join. `'done'`: the member is outstanding no more. `'held'`: it is outstanding until it is
 * revived and completes. `'fails'`: the join is dead.
 */
export function effectOf(fate: Fate, onDead: OnDead): 'done' | 'held' | 'fails' {
  if (fate === 'completed' || onDead === 'go-on') return 'done'
  return onDead === 'hold' && fate === 'dead' ? 'held' : 'fails'
}

/**
 * The order in which joins die that have waited for too long: by their time, those of one moment by queue and id. It says
 * which of two dies as late, and which of the other's death.
 */
export function byLateness(
  a: { readonly until: number; readonly queue: string; readonly id: string },
  b: { readonly until: number; readonly queue: string; readonly id: string },
): number {
  return a.until - b.until || compareBytes(a.queue, b.queue) || compareBytes(a.id, b.id)
}

/** The members of a set for which the join waits no more. */
export function doneIn({ onDead, counts }: Pick<StoredSet, 'onDead' | 'counts'>): number {
  const { completed, dead, cancelled, expired } = counts
  return onDead === 'go-on' ? completed + dead + cancelled + expired : completed
}

/** Whether nobody in the set is outstanding. */
export function isComplete(
  set: Pick<StoredSet, 'onDead' | 'counts'> & { readonly size?: number | undefined },
): boolean {
  return set.size !== undefined && doneIn(set) === set.size
}

/** The members of a join for which it waits, as far as their number is known. */
export function outstandingIn(
  sets: readonly (Pick<StoredSet, 'onDead' | 'counts' | 'added'> & { readonly size?: number | undefined })[],
): number {
  return sets.reduce((sum, set) => sum + (set.size ?? set.added) - doneIn(set), 0)
}

/**
 * Whether a dead join may wait again: whoever is missing can still come. A member that was cancelled, deleted or expired
 * cannot.
 */
export function canWaitAgain(sets: readonly Pick<StoredSet, 'onDead' | 'counts'>[]): boolean {
  return sets.every(({ onDead, counts }) => onDead === 'go-on' || counts.cancelled + counts.expired === 0)
}

/**
 * Refuses sizes with which the open sets of a join cannot be sealed: of a set that it has not, other than those that they
 * were sealed by, or below the members already added. Throws `InvalidArgumentError`.
 */
export function refuseSizes(
  id: string,
  sets: readonly (Pick<StoredSet, 'name' | 'added'> & { readonly size?: number | undefined })[],
  sizes: Readonly<Record<string, number>>,
): void {
  for (const [name, size] of Object.entries(sizes)) {
    const set = sets.find((one) => one.name === name)
    if (set === undefined) throw new InvalidArgumentError(`join '${id}' has no set '${name}'.`)
    if ((set.size ?? size) !== size || size < set.added)
      throw new InvalidArgumentError(
        `set '${name}' of join '${id}' cannot have ${size} members: it has ${set.size ?? set.added}.`,
      )
  }
}

/** Why the members of a dead join were cancelled that had not ended. */
export const joinDeadReason = 'join-dead'

/** The error of a join that a member made dead. */
export function memberDeadError(
  set: Pick<NewSet, 'name' | 'queue' | 'ids' | 'isMany'>,
  number: number,
  fate: Fate,
): string {
  const how = fate === 'dead' ? 'is dead' : fate === 'expired' ? 'has expired' : 'was cancelled'
  return `member '${memberId(set, number)}' of set '${set.name}' in queue '${set.queue}' ${how}`
}

/** The member that `memberDeadError` names; undefined: the error is another, or none of these sets has it. */
export function failedMember<Set extends Pick<NewSet, 'name' | 'ids' | 'isMany'>>(
  sets: readonly Set[],
  error: string,
): { readonly set: Set; readonly number: number } | undefined {
  for (const set of sets) {
    const begin = `member '${set.ids}`
    const rest = error.startsWith(begin) ? error.slice(begin.length) : ''
    const number = /^(?:\.(\d+))?' of set '(.*?)' in queue /s.exec(rest)
    if (number?.[2] === set.name && (number[1] !== undefined) === set.isMany)
      return { set, number: Number(number[1] ?? 0) }
  }
  return undefined
}

export function lateError(outstanding: number): string {
  return `${outstanding} of its members had not ended in the time that it was given`
}

export const neverSealedError = 'its members were not all added in the time that its producer was given'
export const tooLargeError = `the results of its members take more than ${mostJoinBytes / 1_048_576} MiB`
