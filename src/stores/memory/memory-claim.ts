/** A claim on one queue of the memory store: recover, promote, take, then say who asks again and when. */

import { hasLed, leadAfter, suspectLeadAfter, suspectLeadMs } from '../../core/lead.js'
import { dueAt, nextFence } from '../../core/stamp.js'
import { upkeepLimit } from '../../core/upkeep.js'
import type { Claim, Claimed, Claimer, ClaimFrom, Wait } from '../store.js'
import { type Crashes, crash } from './memory-crash.js'
import { claimOf, type MemoryJob } from './memory-job.js'
import { MemoryOrderedQueue } from './memory-ordered-queue.js'
import type { MemoryQueue } from './memory-queue.js'

/** What one of the queues asked adds to the answer. */
export interface Asked extends Pick<Claimed, 'claims' | 'crashed' | 'buried' | 'waits' | 'more'> {
  /** Whether somebody who waits must hear of it: of jobs left behind, or that nobody leads any more. */
  readonly rings: boolean
}

export function claimFrom(queue: MemoryQueue, from: ClaimFrom, by: Claimer, now: number): Asked {
  const { limit } = from
  const crashes = recover(queue, now)
  promote(queue, now)
  const claims = queue.isStopped || queue.isFull ? [] : take(queue, from, by, now)
  const hasLeft = claims.length > 0 && hasLed(queue.lead, by.worker, now)
  if (hasLeft) queue.lead = undefined
  const waits = [
    ...(claims.length === 0 ? changeWait(queue, by, now) : []),
    ...(queue.isStopped || queue.isFull ? [] : suspectWait(queue, by.worker, by.alone === true || limit === 0, now)),
  ]
  // One waiter was woken; whoever takes some and leaves some wakes the next.
  const rings = queue.claimable > 0 || hasLeft
  return { claims, ...crashes, waits, more: queue.hasWork(now), rings }
}

/** Every lease that has ended is a crash. */
function recover(queue: MemoryQueue, now: number): Crashes {
  const crashes: Crashes = { crashed: [], buried: [] }
  for (const job of queue.running.head(upkeepLimit)) {
    if (job.leaseUntil > now) break
    crash(queue, job, crashes, now)
  }
  return crashes
}

function promote(queue: MemoryQueue, now: number): void {
  for (const job of queue.scheduled.head(upkeepLimit)) {
    if (dueAt(job.stamp) > now) break
    queue.promote(job, now)
  }
}

function take(queue: MemoryQueue, from: ClaimFrom, by: Claimer, now: number): Claim[] {
  const { limit, leaseMs = by.leaseMs, maxPayloads = Number.POSITIVE_INFINITY } = from
  const { worker, alone = false } = by
  const jobs = alone ? nextAlone(queue, limit) : queue.ready.head(limit)
  if (jobs.length > 0) queue.lastFence = nextFence(queue.lastFence, now)
  const claim = { worker, fence: queue.lastFence, alone, leaseUntil: now + leaseMs }
  for (const job of jobs) queue.take(job, claim, now, maxPayloads)
  return jobs.map(claimOf)
}

/** Suspects before others: nobody else will ever be given them. */
function nextAlone(queue: MemoryQueue, limit: number): MemoryJob[] {
  const [next = queue.ready.first] = queue.suspects
  return next === undefined || limit < 1 ? [] : [next]
}

/** Of a queue that has nothing for this claimer: why, when that changes by itself, and whether the claimer leads. */
function changeWait(queue: MemoryQueue, by: Claimer, now: number): Wait[] {
  const of = placeOf(queue)
  const hasJob = queue.ready.size > 0 || (by.alone === true && queue.suspects.size > 0)
  if (hasJob && !queue.isStopped && !queue.isFull) return []
  const forMs = queue.isStopped ? undefined : queue.nextChangeMs(now)
  if (forMs !== undefined) queue.lead = leadAfter(queue.lead, by.worker, now + forMs, now)
  else if (queue.lead?.worker === by.worker) queue.lead = undefined
  if (queue.isStopped) return [{ ...of, reason: 'paused' }]
  const reason = queue.isFull ? 'full' : queue.scheduled.size > 0 ? 'scheduled' : 'empty'
  if (forMs === undefined) return [{ ...of, reason }]
  return [{ ...of, reason, forMs, ...leads(queue.lead?.worker === by.worker) }]
}

/** Of a queue with suspects left behind: how long their lead may take to make room for one. */
function suspectWait(queue: MemoryQueue, worker: string, makesRoom: boolean, now: number): Wait[] {
  const before = queue.suspectLead
  queue.suspectLead = queue.suspects.size > 0 ? suspectLeadAfter(before, worker, makesRoom, now) : undefined
  if (queue.suspectLead === undefined) return []
  return [{ ...placeOf(queue), reason: 'suspect', forMs: suspectLeadMs, ...leads(queue.suspectLead !== before) }]
}

function placeOf(queue: MemoryQueue): Pick<Wait, 'queue' | 'shard'> {
  const { name } = queue.settings
  return queue instanceof MemoryOrderedQueue ? { queue: name, shard: queue.shard } : { queue: name }
}

function leads(does: boolean): { lead?: true } {
  return does ? { lead: true } : {}
}
