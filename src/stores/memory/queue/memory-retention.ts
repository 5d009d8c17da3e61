/** The retention of one queue of the memory store: removes expired things, and those beyond the kept number. */

import { trimLimit } from '../../rules/bounds.js'
import { bySeq, type MemoryJob, type RememberedJob, withoutResult } from './memory-job.js'
import type { MemoryQueue } from './memory-queue.js'

/** Called once for every queue that a settle touched. */
export function trim(queue: MemoryQueue, now: number): void {
  queue.remembered.expire(trimLimit, now)
  const { completed, dead, settings } = queue
  const expired = [...completed].filter((job) => queue.isHidden(job, now))
  expired.sort((a, b) => a.expiresAt! - b.expiresAt! || bySeq(a, b))
  for (const job of expired.slice(0, trimLimit)) dropResult(queue, job, now)
  const excess = completed.size - (settings.resultsCount ?? Number.POSITIVE_INFINITY)
  // Those that somebody waits for stay; no others go in their place.
  for (const job of completed.head(Math.min(trimLimit, excess)))
    if (queue.expected.until(job.spec.id, now) <= now) dropResult(queue, job, now)
  for (const job of dead.head(trimLimit)) {
    if (!queue.isHidden(job, now)) break
    lose(queue, job, job.finishedAt!, now)
  }
  const excessDead = dead.size - (settings.dead.count ?? Number.POSITIVE_INFINITY)
  for (const job of dead.head(Math.min(trimLimit, excessDead))) lose(queue, job, job.finishedAt!, now)
}

/** The memory of an ended job, whether or not its result is kept. */
export function memoryOf(queue: MemoryQueue, id: string, now: number): RememberedJob | undefined {
  const job = queue.jobs.get(id)
  if (job === undefined) return queue.remembered.get(id, now)
  if (job.state !== 'completed' || job.finishedAt! + job.spec.rememberMs <= now) return undefined
  return withoutResult(job)
}

/** Drops a kept result; the id stays remembered as long as it would have been without one. */
function dropResult(queue: MemoryQueue, job: MemoryJob, now: number): void {
  const memory = memoryOf(queue, job.spec.id, now)
  queue.drop(job, now)
  if (memory !== undefined) queue.remembered.add(memory)
}

/**
 * Removes a job that existed, or ended, at this instant: callers that wait for a missing job can tell that it was lost.
 */
export function lose(queue: MemoryQueue, job: MemoryJob, at: number, now: number): void {
  queue.lostAt = Math.max(queue.lostAt, at)
  queue.drop(job, now)
}
