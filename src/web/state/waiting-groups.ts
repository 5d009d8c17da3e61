/** The groups whose jobs wait for a throttle: those of a queue's first ready jobs, the longest wait first. */

import { recordsOf } from '../../client/store-facets.js'
import { groupRules, type ThrottleRule } from '../../core/queue/throttle.js'
import type { Store } from '../../stores/contract/store.js'

interface WaitingGroup {
  /** `''`: the jobs without a group. */
  readonly group: string
  /** How many of the jobs that were looked at are its. */
  readonly ready: number
  /** Ms until the throttle permits its next start; 0: at once. */
  readonly forMs: number
  readonly rules: readonly ThrottleRule[]
  /** For each rule, the starts in its window that ends now. */
  readonly hits: readonly number[]
}

interface WaitingGroups {
  readonly items: readonly WaitingGroup[]
  /** Not all ready jobs, or not all of their groups, were looked at. */
  readonly more: boolean
}

const mostJobs = 200
const mostGroups = 20

/** Nothing for a queue whose throttle has no rules for groups. At most 22 calls of the store. */
export async function waitingGroups(store: Store, queue: string): Promise<WaitingGroups> {
  const { throttles } = store
  const throttle = throttles && (await throttles.state(queue))?.throttle
  if (throttles === undefined || throttle === undefined || groupRules(throttle) === undefined)
    return { items: [], more: false }
  const { jobs, cursor } = await recordsOf(store).list(queue, { state: 'ready', by: 'time', limit: mostJobs })
  const counts = new Map<string, number>()
  for (const { group = '' } of jobs) counts.set(group, (counts.get(group) ?? 0) + 1)
  const asked = [...counts].sort(([, a], [, b]) => b - a).slice(0, mostGroups)
  const items = await Promise.all(
    asked.map(async ([group, ready]): Promise<WaitingGroup[]> => {
      const state = await throttles.state(queue, group)
      if (state === undefined) return []
      const rules = state.rate ?? groupRules(state.throttle) ?? []
      const hits = state.throttle.by === 'group' ? state.hits : (state.groupHits ?? [])
      return [{ group, ready, forMs: state.forMs, rules, hits }]
    }),
  )
  return {
    items: items.flat().sort((a, b) => b.forMs - a.forMs || b.ready - a.ready),
    more: cursor !== undefined || counts.size > mostGroups,
  }
}
