/** The revival of a dead join with its dead members: these first, so that it waits for them again. */

import type { JobKey } from '../../stores/contract/job-records.js'
import type { Joins } from '../../stores/contract/joins.js'
import type { Store } from '../../stores/contract/store.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { morgueOf } from '../store-facets.js'
import { total } from './step-loop.js'

/** The most ends of members in one request. */
const pageSize = 1_000

/** Revives the dead members of a join, and theirs. Resolves with their number; 0 if it is no join. */
export async function revivedMembers(store: Store, joins: Joins, join: JobKey): Promise<number> {
  const stored = await joins.look(join)
  let revived = 0
  for (const set of stored?.sets ?? []) {
    const { name, queue, added, counts } = set
    if (counts.dead === 0) continue
    for (let from = 0; from < added; from += pageSize) {
      const ends = await joins.ends(join, name, from, pageSize)
      const ids = ends.flatMap(({ number, fate }) => (fate === 'dead' ? memberId(set, number) : []))
      if (ids.length === 0) continue
      // The members of a set are of one task: all of them are joins or none.
      const areJoins = (await joins.look({ queue, id: ids[0]! })) !== undefined
      for (const id of areJoins ? ids : []) revived += await revivedMembers(store, joins, { queue, id })
      revived += await total(() => morgueOf(store).revive(queue, { ids }))
    }
  }
  return revived
}
