/** The memory store's listings: pages of jobs in a given order. */

import type { JobState } from '../../../core/job.js'
import type { ListQuery, Page } from '../../contract/job-records.js'
import type { QueueBasis } from '../../contract/queue-settings.js'
import { comparePositions, cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import { type MemoryJob, storedJob } from '../queue/memory-job.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

/** A page ends with a position, not with a number of jobs: jobs that come and go meanwhile shift no others. */
export function page(shards: readonly MemoryQueue[], query: ListQuery, now: number): Page {
  const after = query.cursor === undefined ? undefined : positionIn(query.cursor, query.by, arePosition)
  const found = shards
    .flatMap((shard) => shard.kept().filter((job) => !shard.isHidden(job, now)))
    .filter((job) => query.state === undefined || job.state === query.state)
    .filter((job) => query.by !== 'retry' || (job.attempt > 1 && isWaitingOrRunning(job.state)))
    .map((job) => ({ job, position: positions[query.by](job, shards[0]!.settings) }))
    .filter(({ position }) => after === undefined || comparePositions(position, after) > 0)
    .sort((a, b) => comparePositions(a.position, b.position))
  const jobs = found.slice(0, query.limit).map(({ job }) => storedJob(job, 'listed'))
  return found.length > jobs.length ? { jobs, cursor: cursorAt(found[jobs.length - 1]!.position, query.by) } : { jobs }
}

const positions: Record<ListQuery['by'], (job: MemoryJob, settings: QueueBasis) => ListPosition> = {
  id: (job) => [job.spec.id, job.state === 'dead' ? 1 : 0],
  time: timePosition,
  retry: (job, settings) => [job.attempt, tie(job, settings)],
}

/** The jobs of an ordered queue are in several shards, each of which counts for itself. */
function tie(job: MemoryJob, { kind }: QueueBasis): number | string {
  return kind === 'ordered' ? job.spec.id : job.seq
}

function timePosition(job: MemoryJob, settings: QueueBasis): ListPosition {
  const { order, kind } = settings
  const last = tie(job, settings)
  switch (job.state) {
    case 'running':
      return [0, job.fence, last]
    case 'ready':
      return [1, job.suspect ? 1 : 0, -job.spec.priority, order === 'lifo' ? -job.stamp : job.stamp, last]
    case 'scheduled':
      return [2, job.stamp, last]
    default:
      return [job.state === 'completed' ? 3 : 4, -job.finishedAt!, kind === 'ordered' ? last : -job.seq]
  }
}

function isWaitingOrRunning(state: JobState): boolean {
  return state === 'ready' || state === 'scheduled' || state === 'running'
}

function arePosition(parts: readonly unknown[]): boolean {
  return parts.length > 0 && parts.every((part) => typeof part === 'number' || typeof part === 'string')
}
