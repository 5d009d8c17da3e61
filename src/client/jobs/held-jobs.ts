/** Held jobs: ready jobs that wait for the end of a hold, or for a pause of their group. */

import type { JobHold } from '../../core/job.js'
import type { StoredJob } from '../../stores/contract/job-records.js'
import type { Store } from '../../stores/contract/store.js'

/**
 * Tells of each of these jobs of a queue what holds it; undefined if nothing does. One call of the store, and none if no
 * job is ready. `now`: the wall clock.
 */
export async function holdsOn(
  { throttles }: Store,
  queue: string,
  jobs: readonly StoredJob[],
  now: number,
): Promise<(job: StoredJob) => JobHold | undefined> {
  const ready = jobs.filter(({ state }) => state === 'ready')
  if (throttles === undefined || ready.length === 0) return () => undefined
  const groups = [...new Set(ready.flatMap(({ group }) => group ?? []))]
  // A group may be held and paused.
  const { holds } = await throttles.holds(queue, { groups, limit: 1 + 2 * groups.length })
  return (job) => {
    if (job.state !== 'ready') return undefined
    const own = holds.filter(({ group }) => group === undefined || group === job.group)
    if (own.length === 0) return undefined
    if (own.some(({ forMs }) => forMs === undefined)) return { paused: true }
    return { until: new Date(now + Math.max(...own.map(({ forMs }) => forMs!))) }
  }
}
