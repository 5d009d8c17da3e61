/** The revival of a dead join with its dead members: these first, so that it waits for them again. */

import type { JobKey } from '../../stores/contract/job-records.js'
import type { Joins, StoredJoin } from '../../stores/contract/joins.js'
import type { Store } from '../../stores/contract/store.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { morgueOf } from '../store-facets.js'
import { total } from './step-loop.js'

/** The most ends of members in one request. */
const pageSize = 1_000

/** The most members that are looked up at once. */
const mostLooks = 100

/** Revives the dead members of a join, and theirs. Resolves with their number; 0 if it is no join. */
export async function revivedMembers(store: Store, joins: Joins, join: JobKey): Promise<number> {
  return revivedOf(store, joins, join, await joins.look(join))
}

async function revivedOf(store: Store, joins: Joins, join: JobKey, stored: StoredJoin | undefined): Promise<number> {
  let revived = 0
  for (const set of stored?.sets ?? []) {
    const { name, queue, added, counts } = set
    if (counts.dead === 0) continue
    for (let from = 0; from < added; from += pageSize) {
      const ends = await joins.ends(join, name, from, pageSize)
      const ids = ends.flatMap(({ number, fate }) => (fate === 'dead' ? memberId(set, number) : []))
      if (ids.length === 0) continue
      // Each is looked up: of those that were deleted since, the store no longer knows whether they were joins.
      for (let begin = 0; begin < ids.length; begin += mostLooks) {
        const keys = ids.slice(begin, begin + mostLooks).map((id) => ({ queue, id }))
        const looks = await Promise.all(keys.map((key) => joins.look(key)))
        for (const [i, key] of keys.entries()) revived += await revivedOf(store, joins, key, looks[i])
      }
      revived += await total(() => morgueOf(store).revive(queue, { ids }))
    }
  }
  return revived
}
