/** The ends and the beats of claims in one queue of the memory store. */

import { joinedLog } from '../../../core/job/job-log.js'
import { type EndedRun, startedAtOf } from '../../contract/job-beat.js'
import type { Records } from '../../contract/job-records.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, Hold, SettleAnswer, SettleItem } from '../../contract/settle.js'
import { afterFailure, afterSettle, type ClaimEnd, type EndDetails } from '../../rules/claim-end.js'
import { defined, type MemoryJob } from '../queue/memory-job.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

type Failure = Parameters<Records['fail']>[2]

export function settle(queue: MemoryQueue, item: SettleItem, now: number): SettleAnswer {
  const job = queue.jobs.get(item.id)
  if (job === undefined) return 'gone'
  if (!isClaimed(job, item)) return 'lost'
  if ('run' in item && item.run !== undefined && queue.settings.kind === 'plain') knowRun(job, item.run, now)
  if ('done' in item && queue instanceof MemoryOrderedQueue) queue.dropDone(job, item.done)
  if (item.kind === 'complete') queue.processed += 1
  if (item.kind === 'retry') queue.failed += 1
  const end = afterSettle(item, job, isOrdered(queue), (text) => text)
  carryOut(queue, job, end, item.kind === 'wait' ? { wait: item } : item, now)
  if (item.hold !== undefined) hold(queue, job, item.hold, now)
  return 'ok'
}

/** Ends the claim of a running job as a counted failure, because an operator says so. */
export function fail(queue: MemoryQueue, job: MemoryJob, { reason, ...how }: Failure, now: number): void {
  queue.failed += 1
  const end = afterFailure({ ...how, error: reason }, job, isOrdered(queue), (text) => text)
  carryOut(queue, job, end, { ...how, reason }, now)
}

function carryOut(
  queue: MemoryQueue,
  job: MemoryJob,
  { becomes, attempt, crashes, error, reason }: ClaimEnd<string | undefined>,
  how: EndDetails,
  now: number,
): void {
  Object.assign(job, { attempt, crashes, error, reason })
  switch (becomes) {
    case 'completed':
    case 'cancelled':
      queue.end(job, becomes, now, how.result)
      break
    case 'kept':
      queue.keep(job, how.result!, now)
      break
    case 'dead':
      queue.bury(job, reason, error, now)
      break
    case 'exhausted':
      queue.exhaust(job, how.reason, error, now)
      break
    case 'delayed':
      queue.schedule(job, how.delayMs!, now)
      break
    case 'returned':
      queue.putBack(job, now)
      break
    case 'waiting':
      queue.await(job, how.wait!, now)
      break
  }
}

function isOrdered({ settings }: MemoryQueue): boolean {
  return settings.kind === 'ordered'
}

/** Records when and where the job ran, unless a beat has reported it. */
function knowRun(job: MemoryJob, { startedMs, host, pid }: EndedRun, now: number): void {
  job.startedAt ??= startedAtOf(startedMs, now)
  job.process = { ...defined({ host, pid }), ...job.process }
}

/** In all shards: limits belong to the queue. A job without a group holds the whole queue. */
function hold(queue: MemoryQueue, { spec }: MemoryJob, { of, forMs }: Hold, now: number): void {
  const group = of === 'group' ? spec.group : undefined
  for (const shard of queue.limits.shards) {
    shard.setBack.follow(now)
    shard.hold(group, now + forMs)
  }
}

export function extend(queue: MemoryQueue, item: ExtendItem, now: number): ExtendAnswer {
  const job = queue.jobs.get(item.id)
  if (job === undefined || !isClaimed(job, item)) return 'lost'
  queue.setBack.follow(now)
  queue.renew(job, Math.max(job.leaseUntil, now + item.leaseMs))
  const { beat } = item
  if (beat !== undefined) {
    if (beat.startedMs !== undefined) job.startedAt ??= startedAtOf(beat.startedMs, now)
    const { host, boot, pidns, pid, ticks } = beat
    job.process = { ...job.process, ...defined({ host, boot, pidns, pid, ticks }) }
    job.progress = beat.progress ?? job.progress
    if (queue.settings.kind === 'plain') {
      job.checkpoint = beat.checkpoint ?? job.checkpoint
      job.log = joinedLog(job.log, beat.log ?? '')
    }
    job.updatedAt = now
  }
  return job.cancelRequested ? 'cancel' : 'ok'
}

/** Whether this is the job's current claim. */
export function isClaimed(job: MemoryJob, { fence }: ClaimKey): boolean {
  return job.state === 'running' && job.fence === fence
}
