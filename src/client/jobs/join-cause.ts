/** Why a dead join is dead: the error of the member that made it so, and if that is a join, of its member. */

import { ownError } from '../../core/job/job-failures.js'
import type { JobKey, StoredJob } from '../../stores/contract/job-records.js'
import type { Store } from '../../stores/contract/store.js'
import { failedMember, memberDeadReason, memberId } from '../../stores/rules/join-rules.js'

/** How many joins that wait for each other are followed. */
const mostDeep = 5

/** The job; if a member made it dead, its error says that of the member too, as far as it is kept. */
export async function withCause(store: Store, job: StoredJob): Promise<StoredJob> {
  const { queue, id, isJoin, reason, error } = job
  if (!isJoin || reason !== memberDeadReason || error === undefined) return job
  return { ...job, error: await explained(store, { queue, id }, ownError(error), mostDeep) }
}

async function explained(store: Store, join: JobKey, error: string, deep: number): Promise<string> {
  const { joins, records } = store
  if (deep === 0) return error
  const found = failedMember((await joins?.look(join))?.sets ?? [], error)
  if (found === undefined) return error
  const { set, number } = found
  const member = { queue: set.queue, id: memberId(set, number) }
  const [end] = (await joins?.ends(join, set.name, number, 1)) ?? []
  if (end?.fate !== 'dead') return error
  // A set that keeps no results keeps no errors.
  const kept = end.error ?? (await records?.get(member.queue, member.id))?.error
  if (kept === undefined) return error
  return `${error}: ${await explained(store, member, ownError(kept), deep - 1)}`
}
