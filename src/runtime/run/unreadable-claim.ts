/**
 * The wait of a job that this process cannot read: another one may have its key or codec, and so the job goes back, a day
 * at most. When that began is in its error, so that all workers and their successors count alike. Pure.
 */

import { ownError } from '../../core/job/job-failures.js'
import type { Lack } from '../../core/packing/packing.js'
import type { Claim } from '../../stores/contract/claim.js'

/**
 * How long a job, or a death, is left to workers that may have its key or codec. A rollout of keys is over by then. An attacker who
 * changes the id of a key in the store keeps its job from the morgue no longer.
 */
export const longestUnreadableMs = 86_400_000
/** A job that was not put back for so long was read meanwhile, or nobody worked: its day begins anew. */
const longestGapMs = 3_600_000
const noted = /which workers that claimed it lacked from (\S+Z) to (\S+Z)/

/** `isOver`: it is not put back again. `has`: what the process has instead. */
export function unreadable(
  { error }: Pick<Claim, 'error'>,
  { stored, has }: Lack,
  now: number,
): { readonly error: string; readonly isOver: boolean } {
  const [, first, last] = (error === undefined ? null : noted.exec(ownError(error))) ?? []
  const isSame = last !== undefined && Math.abs(now - Date.parse(last)) <= longestGapMs
  const sinceMs = isSame ? Math.min(Date.parse(first!), now) : now
  const isOver = now - sinceMs >= longestUnreadableMs
  const [from, to] = [sinceMs, now].map((at) => new Date(at).toISOString())
  const end = isOver
    ? 'It is put back no longer: add what is missing, and revive it.'
    : 'It is put back until a worker has it, for a day at most.'
  return {
    error: `${stored}, which workers that claimed it lacked from ${from} to ${to}. ${end} The last one has ${has}.`,
    isOver,
  }
}
