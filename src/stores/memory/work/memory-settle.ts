/** The ends and the beats of claims in one queue of the memory store. */

import { joinedLog } from '../../../core/job/job-log.js'
import { type EndedRun, startedAtOf } from '../../contract/job-beat.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, Hold, SettleAnswer, SettleItem } from '../../contract/settle.js'
import { defined, type MemoryJob } from '../queue/memory-job.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

/** The consequence of a failure: again after `delayMs` or, for the last one, into the morgue with `reason`. */
interface Failure {
  readonly delayMs: number
  readonly last?: boolean
  readonly error?: string
  readonly reason?: string
}

export function settle(queue: MemoryQueue, item: SettleItem, now: number): SettleAnswer {
  const job = queue.jobs.get(item.id)
  if (job === undefined) return 'gone'
  if (!isClaimed(job, item)) return 'lost'
  if ('run' in item && item.run !== undefined && queue.settings.kind === 'plain') knowRun(job, item.run, now)
  if ('done' in item && queue instanceof MemoryOrderedQueue) queue.dropDone(job, item.done)
  switch (item.kind) {
    case 'complete':
      queue.processed += 1
      job.reason = undefined
      if (item.result === undefined) queue.end(job, 'completed', now)
      else queue.keep(job, item.result, now)
      break
    case 'retry':
      failClaim(queue, job, item, now)
      break
    case 'release':
      job.error = item.error ?? job.error
      release(queue, job, item.delayMs, now)
      break
    case 'bury':
      queue.bury(job, item.reason, item.error, now)
      break
    case 'cancel':
      job.reason = (job.cancelRequested ? job.reason : undefined) ?? item.reason
      queue.end(job, 'cancelled', now)
      break
  }
  if (item.hold !== undefined) hold(queue, job, item.hold, now)
  return 'ok'
}

/** Records when and where the job ran, unless a beat has reported it. */
function knowRun(job: MemoryJob, { startedMs, host, pid }: EndedRun, now: number): void {
  job.startedAt ??= startedAtOf(startedMs, now)
  job.process = { ...defined({ host, pid }), ...job.process }
}

/** A counted failure of a running job. */
export function failClaim(queue: MemoryQueue, job: MemoryJob, failure: Failure, now: number): void {
  queue.failed += 1
  job.attempt += 1
  job.error = failure.error
  // An ordered queue goes on with the waiting payloads: cancelled ones must not come back with them.
  const isCancelled = job.cancelRequested && (!failure.last || queue.settings.kind === 'ordered')
  if (isCancelled) queue.end(job, 'cancelled', now)
  else if (failure.last) queue.exhaust(job, failure.reason, failure.error, now)
  else queue.schedule(job, failure.delayMs, now)
}

/** Not counted: with no delay the job is back in its old place. */
function release(queue: MemoryQueue, job: MemoryJob, delayMs: number, now: number): void {
  if (job.cancelRequested) queue.end(job, 'cancelled', now)
  else if (delayMs === 0) queue.putBack(job, now)
  else queue.schedule(job, delayMs, now)
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
