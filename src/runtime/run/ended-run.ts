/** The ended run of a job, as its record tells of it: when it began, and in which process. Pure. */

import type { EndedRun, JobProcess } from '../../stores/contract/job-beat.js'

/** Of one that began at `begunAt` and ends `now`, on one monotonic clock; undefined if it has not begun. `place`: where, if that is to be told. */
export function endedRunOf(
  begunAt: number | undefined,
  now: number,
  { host, pid }: Pick<JobProcess, 'host' | 'pid'> = {},
): EndedRun | undefined {
  if (begunAt === undefined) return undefined
  const startedMs = now - begunAt
  return host === undefined || pid === undefined ? { startedMs } : { startedMs, host, pid }
}
