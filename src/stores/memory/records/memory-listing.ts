/** The memory store's listings: pages of jobs in a given order. */

import { InvalidArgumentError } from '../../../core/errors.js'
import type { JobState } from '../../../core/job.js'
import type { ListQuery, Page } from '../../contract/job-records.js'
import type { QueueSettings } from '../../contract/queue-settings.js'
import { type MemoryJob, storedJob } from '../queue/memory-job.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

/** Where a job stands in a listing; compared part by part. No two jobs of a listing have the same. */
type Place = readonly (number | string)[]

/** A page ends with a place, not with a number of jobs: those that come and go meanwhile shift nobody else. */
export function page(shards: readonly MemoryQueue[], query: ListQuery, now: number): Page {
  const after = query.cursor === undefined ? undefined : placeOf(query.cursor, query.by)
  const found = shards
    .flatMap((shard) => shard.kept().filter((job) => !shard.isHidden(job, now)))
    .filter((job) => query.state === undefined || job.state === query.state)
    .filter((job) => query.by !== 'retry' || (job.attempt > 1 && isWaitingOrRunning(job.state)))
    .map((job) => ({ job, place: places[query.by](job, shards[0]!.settings) }))
    .filter(({ place }) => after === undefined || comparePlaces(place, after) > 0)
    .sort((a, b) => comparePlaces(a.place, b.place))
  const jobs = found.slice(0, query.limit).map(({ job }) => storedJob(job, 'listed'))
  return found.length > jobs.length ? { jobs, cursor: cursorOf(found[jobs.length - 1]!.place, query.by) } : { jobs }
}

const places: Record<ListQuery['by'], (job: MemoryJob, settings: QueueSettings) => Place> = {
  id: (job) => [job.spec.id, job.state === 'dead' ? 1 : 0],
  time: timePlace,
  retry: (job, settings) => [job.attempt, tie(job, settings)],
}

/** Jobs of an ordered queue lie in several shards, each of which counts for itself. */
function tie(job: MemoryJob, { kind }: QueueSettings): number | string {
  return kind === 'ordered' ? job.spec.id : job.seq
}

function timePlace(job: MemoryJob, settings: QueueSettings): Place {
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

function comparePlaces(a: Place, b: Place): number {
  for (const [i, part] of a.entries()) {
    const other = b[i]
    const difference =
      typeof part === 'string' ? compareBytes(part, String(other)) : part - (other === undefined ? 0 : Number(other))
    if (difference !== 0) return difference
  }
  return 0
}

/** UTF-8 byte order, as databases sort text. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function cursorOf(place: Place, by: ListQuery['by']): string {
  return Buffer.from(JSON.stringify([by, ...place])).toString('base64url')
}

function placeOf(cursor: string, by: ListQuery['by']): Place {
  const parts = parse(cursor)
  if (!Array.isArray(parts) || parts[0] !== by || parts.length < 2 || !parts.slice(1).every(isPart)) {
    throw new InvalidArgumentError(
      `'${cursor}' is not a cursor of a listing by ${by}. Use the cursor of the page before, with the same query.`,
    )
  }
  return parts.slice(1)
}

function isPart(part: unknown): part is number | string {
  return typeof part === 'number' || typeof part === 'string'
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}
