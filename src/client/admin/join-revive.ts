/** The revival of a dead join with its dead members: these first, so that it waits for them again. */

import type { JobKey, JobSelection } from '../../stores/contract/job-records.js'
import type { Joins, StoredJoin } from '../../stores/contract/joins.js'
import type { Store } from '../../stores/contract/store.js'
import { memberId } from '../../stores/rules/join-rules.js'
import { morgueOf } from '../store-facets.js'
import { total } from './step-loop.js'

/** The most ends of members in one request. */
const pageSize = 1_000

/** The most members that are looked up at once. */
const mostLooks = 100

/** The chosen dead joins of a queue; of given ids it is not known whether they are joins. */
export async function* deadJoins(
  store: Store,
  queue: string,
  where: JobSelection,
): AsyncGenerator<JobKey, void, undefined> {
  if (typeof where === 'object') {
    yield* where.ids.map((id) => ({ queue, id }))
    return
  }
  for (let cursor: string | undefined; ; ) {
    const page = await morgueOf(store).list(queue, { by: 'id', limit: 200, ...(cursor && { cursor }) })
    for (const { id, isJoin } of page.jobs) if (isJoin) yield { queue, id }
    cursor = page.cursor
    if (cursor === undefined) return
  }
}

/**
 * Revives the dead members of these joins, and theirs, in bounded steps: yields how many each step has revived, never 0. A key
 * may be of a job that is no join. Begun anew it goes on where it was left, as what was revived is not dead any more.
 */
export async function* revivedMembers(
  store: Store,
  joins: Joins,
  keys: Iterable<JobKey> | AsyncIterable<JobKey>,
): AsyncGenerator<number, void, undefined> {
  for await (const key of keys) yield* revivedOf(store, joins, key, await joins.look(key))
}

async function* revivedOf(
  store: Store,
  joins: Joins,
  join: JobKey,
  stored: StoredJoin | undefined,
): AsyncGenerator<number, void, undefined> {
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
        for (const [i, key] of keys.entries()) yield* revivedOf(store, joins, key, looks[i])
      }
      const revived = await total(() => morgueOf(store).revive(queue, { ids }))
      if (revived > 0) yield revived
    }
  }
}
