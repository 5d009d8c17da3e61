/** A claim on one queue of the memory store: recover, promote, take, then say who asks again and when. */

import type { Buried, Claimed, Claimer, ClaimFrom, Crash, Expired, Wait } from '../../contract/claim.js'
import { upkeepLimit } from '../../rules/bounds.js'
import { afterCrash } from '../../rules/claim-end.js'
import { type LeftQueue, waitsAfter } from '../../rules/claim-waits.js'
import type { ClaimLoad } from '../../rules/claim-weight.js'
import { deal, suspectInMs } from '../../rules/fair-share.js'
import { dueAt, nextFence } from '../../rules/sequence.js'
import { claimOf, type MemoryJob, scored, takenWeight } from '../queue/memory-job.js'
import { hasShutLane } from '../queue/memory-lanes.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'
import { MemoryFairShare } from './memory-fair-share.js'

/** The part of the answer that comes from one queue. */
export interface QueueAnswer extends Pick<Claimed, 'claims' | 'crashed' | 'buried' | 'waits' | 'more'> {
  readonly expired: Expired[]
  /** Whether to ring for jobs that are left behind, or that nobody leads any more. */
  readonly rings: boolean
}

/** The moment of a claim, with the present run of the store and its start. */
interface ClaimMoment {
  readonly now: number
  readonly run: string
  readonly startedAt: number
}

/** `load`: the weight that the claim has from other queues or shards. */
export function claimFrom(
  queue: MemoryQueue,
  from: ClaimFrom,
  by: Claimer,
  at: ClaimMoment,
  load: ClaimLoad,
): QueueAnswer {
  const { limit, leaseMs = by.leaseMs } = from
  const { now, run } = at
  // The throttle must learn of it, even if the queue is shut.
  if (queue.setBack.follow(now)) queue.limits.throttle?.follow(now, run)
  const crashes = recover(queue, leaseMs, at)
  promote(queue, now)
  const expired = expire(queue, now)
  const share = shareOf(queue, from, by, at, load)
  if (!isClosed(queue, now) && !hasExpired(queue, now)) deal(share, limit, by.alone === true)
  const claims = share.taken.map(claimOf)
  const { waits, rings } = waitsAfter(leftOf(queue, share, now), by, { limit, taken: claims.length }, now)
  return { claims, ...crashes, expired, waits, more: queue.hasWork(now), rings }
}

/** Every expired lease is a crash, once lease holders have had time to renew. */
function recover(queue: MemoryQueue, leaseMs: number, { now, run, startedAt }: ClaimMoment): Crashes {
  const crashes: Crashes = { crashed: [], buried: [] }
  const first = queue.running.first
  if (first === undefined || first.leaseUntil > now) return crashes
  if (queue.run !== run) {
    queue.run = run
    queue.sparesUntil = startedAt + leaseMs
  }
  if (queue.sparesUntil > now) return crashes
  for (const job of queue.running.head(upkeepLimit)) {
    if (job.leaseUntil > now) break
    crash(queue, job, crashes, now)
  }
  return crashes
}

/** The crashes of one call, and the jobs that it buried for them. */
export interface Crashes {
  readonly crashed: Crash[]
  readonly buried: Buried[]
}

/**
 * Ends the claim of a running job whose lease ended unsettled, or whose worker has died, as a crash, and adds that to `told`.
 * `error`: how its worker died, if that is known.
 */
export function crash(queue: MemoryQueue, job: MemoryJob, told: Crashes, now: number, error?: string): void {
  const { crashes, becomes } = afterCrash(job, queue.settings.maxCrashes)
  const ref = { queue: job.queue, id: job.spec.id, task: job.spec.task }
  told.crashed.push({ ...ref, worker: job.worker!, charged: job.alone, crashes })
  queue.crashed += 1
  job.crashes = crashes
  job.error = error ?? job.error
  switch (becomes) {
    case 'cancelled':
      queue.end(job, 'cancelled', now)
      break
    case 'dead':
      told.buried.push({ ...ref, reason: 'crashed', ...lastOf(job) })
      queue.exhaust(job, 'crashed', undefined, now)
      break
    case 'suspect':
      queue.putBack(job, now, true)
      break
  }
}

/** The fence of its claim, and the payload that is buried. */
function lastOf({ fence, inHand }: MemoryJob): Pick<Buried, 'fence' | 'payload'> {
  const [oldest] = inHand
  return { fence, ...(oldest && { payload: scored(oldest) }) }
}

function promote(queue: MemoryQueue, now: number): void {
  for (const job of queue.scheduled.head(upkeepLimit)) {
    if (dueAt(job.stamp) > now) break
    queue.promote(job, now)
  }
}

/** Ends the jobs that nobody has begun in time. */
function expire(queue: MemoryQueue, now: number): Expired[] {
  const expired = queue.expiring.due(upkeepLimit, now)
  for (const job of expired) queue.expire(job, now)
  return expired.map(({ queue, spec: { id, task } }) => ({ queue, id, task }))
}

/** Whether more have expired than one claim ends: no claim may receive one. */
function hasExpired({ expiring }: MemoryQueue, now: number): boolean {
  return expiring.due(1, now).length > 0
}

/** Whether nothing is granted, whatever is ready. */
function isClosed(queue: MemoryQueue, now: number): boolean {
  return queue.isStopped || queue.isFull || queue.opensAt > now
}

function shareOf(queue: MemoryQueue, from: ClaimFrom, by: Claimer, at: ClaimMoment, load: ClaimLoad): MemoryFairShare {
  const { leaseMs = by.leaseMs, maxPayloads = Number.POSITIVE_INFINITY } = from
  const { worker, alone = false } = by
  const { now } = at
  let hasTaken = false
  return new MemoryFairShare(queue, at, from, load, (job) => {
    if (!hasTaken) queue.lastFence = nextFence(queue.lastFence, now)
    hasTaken = true
    const claim = { worker, fence: queue.lastFence, alone, leaseUntil: now + leaseMs }
    queue.take(job, claim, now, maxPayloads, load.most)
    return takenWeight(job)
  })
}

function leftOf(queue: MemoryQueue, share: MemoryFairShare, now: number): LeftQueue {
  const { isStopped, isFull, isBusy, opensAt, ready, suspects, scheduled } = queue
  return {
    ...{ of: placeOf(queue), isStopped, isFull, isBusy, opensAt },
    ...{ ordinary: ready.size, suspects: suspects.size, scheduled: scheduled.size },
    isClaimable: queue.claimable(now) > 0,
    suspectInMs: () => suspectInMs(share),
    hasShutLane: () => hasShutLane(queue),
    nextChangeMs: () => queue.nextChangeMs(now),
    get lead() {
      return queue.lead
    },
    set lead(lead) {
      queue.lead = lead
    },
    get suspectLead() {
      return queue.suspectLead
    },
    set suspectLead(lead) {
      queue.suspectLead = lead
    },
  }
}

function placeOf(queue: MemoryQueue): Pick<Wait, 'queue' | 'shard'> {
  const { name } = queue.settings
  return queue instanceof MemoryOrderedQueue ? { queue: name, shard: queue.shard } : { queue: name }
}
