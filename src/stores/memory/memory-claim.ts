/** A claim on one queue of the memory store: recover, promote, take, then say who asks again and when. */

import { hasLed, leadAfter, suspectLeadAfter, suspectLeadMs } from '../../core/lead.js'
import { dueAt, nextFence } from '../../core/stamp.js'
import { upkeepLimit } from '../../core/upkeep.js'
import type { Claim, Claimed, Claimer, ClaimFrom, Wait } from '../store.js'
import { type Crashes, crash } from './memory-crash.js'
import { claimOf, type MemoryJob } from './memory-job.js'
import type { MemoryQueue } from './memory-queue.js'

/** What one of the queues asked adds to the answer. */
export interface Asked extends Pick<Claimed, 'claims' | 'crashed' | 'buried' | 'waits' | 'more'> {
  /** Whether somebody who waits must hear of it: of jobs left behind, or that nobody leads any more. */
  readonly rings: boolean
}

export function claimFrom(queue: MemoryQueue, { limit, leaseMs }: ClaimFrom, by: Claimer, now: number): Asked {
  const crashes = recover(queue, now)
  promote(queue, now)
  const claims = queue.paused ? [] : take(queue, limit, { ...by, leaseMs: leaseMs ?? by.leaseMs }, now)
  const hasLeft = claims.length > 0 && hasLed(queue.lead, by.worker, now)
  if (hasLeft) queue.lead = undefined
  const waits = [
    ...(claims.length === 0 ? changeWait(queue, by, now) : []),
    ...(queue.paused ? [] : suspectWait(queue, by.worker, by.alone === true || limit === 0, now)),
  ]
  // One waiter was woken; whoever takes some and leaves some wakes the next.
  const rings = queue.ready.size > 0 || hasLeft
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

function take(queue: MemoryQueue, limit: number, { worker, leaseMs, alone = false }: Claimer, now: number): Claim[] {
  const jobs = alone ? nextAlone(queue, limit) : queue.ready.head(limit)
  if (jobs.length > 0) queue.lastFence = nextFence(queue.lastFence, now)
  for (const job of jobs) queue.take(job, { worker, fence: queue.lastFence, alone, leaseUntil: now + leaseMs }, now)
  return jobs.map(claimOf)
}

/** Suspects before others: nobody else will ever be given them. */
function nextAlone(queue: MemoryQueue, limit: number): MemoryJob[] {
  const [next = queue.ready.first] = queue.suspects
  return next === undefined || limit < 1 ? [] : [next]
}

/** Of a queue that has nothing for this claimer: why, when that changes by itself, and whether the claimer leads. */
function changeWait(queue: MemoryQueue, by: Claimer, now: number): Wait[] {
  const { name } = queue.settings
  const hasJob = queue.ready.size > 0 || (by.alone === true && queue.suspects.size > 0)
  if (hasJob && !queue.paused) return []
  const forMs = queue.paused ? undefined : queue.nextChangeMs(now)
  if (forMs !== undefined) queue.lead = leadAfter(queue.lead, by.worker, now + forMs, now)
  else if (queue.lead?.worker === by.worker) queue.lead = undefined
  if (queue.paused) return [{ queue: name, reason: 'paused' }]
  const reason = queue.scheduled.size > 0 ? 'scheduled' : 'empty'
  if (forMs === undefined) return [{ queue: name, reason }]
  return [{ queue: name, reason, forMs, ...leads(queue.lead?.worker === by.worker) }]
}

/** Of a queue with suspects left behind: how long their lead may take to make room for one. */
function suspectWait(queue: MemoryQueue, worker: string, makesRoom: boolean, now: number): Wait[] {
  const before = queue.suspectLead
  queue.suspectLead = queue.suspects.size > 0 ? suspectLeadAfter(before, worker, makesRoom, now) : undefined
  if (queue.suspectLead === undefined) return []
  const { name } = queue.settings
  return [{ queue: name, reason: 'suspect', forMs: suspectLeadMs, ...leads(queue.suspectLead !== before) }]
}

function leads(does: boolean): { lead?: true } {
  return does ? { lead: true } : {}
}
