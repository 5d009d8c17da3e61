/** The ended run of a job, for its record: when it began, and in which process. Pure. */

import type { EndedRun, JobProcess } from '../../stores/contract/job-beat.js'

/**
 * A run that began at `begunAt` and ends `now`, on one monotonic clock; undefined if it has not begun. `place`: the
 * process, if the record is to show it.
 */
export function endedRunOf(
  begunAt: number | undefined,
  now: number,
  { host, pid }: Pick<JobProcess, 'host' | 'pid'> = {},
): EndedRun | undefined {
  if (begunAt === undefined) return undefined
  const startedMs = now - begunAt
  return host === undefined || pid === undefined ? { startedMs } : { startedMs, host, pid }
}
