/** A claim on one queue of the memory store: recover, promote, take, then say who asks again and when. */

import type { Claim, Claimed, Claimer, ClaimFrom, Wait } from '../../contract/claim.js'
import { upkeepLimit } from '../../rules/bounds.js'
import type { ClaimLoad } from '../../rules/claim-weight.js'
import { deal } from '../../rules/fair-share.js'
import { dueAt, nextFence } from '../../rules/sequence.js'
import { hasLed, leadAfter, suspectLeadAfter, suspectLeadMs } from '../../rules/wake-lead.js'
import { claimOf, takenWeight } from '../queue/memory-job.js'
import { hasShutLane } from '../queue/memory-opening.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'
import { type Crashes, crash } from './memory-crash.js'
import { MemoryFairShare } from './memory-fair-share.js'

/** What one of the queues asked adds to the answer. */
export interface QueueAnswer extends Pick<Claimed, 'claims' | 'crashed' | 'buried' | 'waits' | 'more'> {
  /** Whether somebody who waits must hear of it: of jobs left behind, or that nobody leads any more. */
  readonly rings: boolean
}

/** The moment of a claim, and since when the store has been up, in which run. */
interface ClaimMoment {
  readonly now: number
  readonly run: string
  readonly startedAt: number
}

/** `load`: what the claim has of other queues, or shards, already. */
export function claimFrom(
  queue: MemoryQueue,
  from: ClaimFrom,
  by: Claimer,
  at: ClaimMoment,
  load: ClaimLoad,
): QueueAnswer {
  const { limit, leaseMs = by.leaseMs } = from
  const { now, run } = at
  // A throttle is to hear of it, whatever is shut.
  if (queue.setBack.follow(now)) queue.limits.throttle?.follow(now, run)
  const crashes = recover(queue, leaseMs, at)
  promote(queue, now)
  const claims = isClosed(queue, now) ? [] : take(queue, from, by, at, load)
  // What is left is shut: somebody must be told when it opens.
  const isClaimable = queue.claimable(now) > 0
  const isShut = claims.length > 0 && queue.ready.size > 0 && !queue.isBusy && !isClaimable
  // It may have no room to ask again. Whoever is rung leads from then on.
  const hasLeft = (claims.length > 0 || isClaimable) && !isShut && hasLed(queue.lead, by.worker, now)
  if (hasLeft) queue.lead = undefined
  const waits = [
    ...(claims.length === 0 || isShut ? changeWait(queue, by, now) : []),
    ...(isClosed(queue, now) ? [] : suspectWait(queue, by.worker, by.alone === true || limit === 0, now)),
  ]
  // One waiter was woken; whoever takes some and leaves some wakes the next.
  const rings = isClaimable || hasLeft
  return { claims, ...crashes, waits, more: queue.hasWork(now), rings }
}

/** Every lease that has ended is a crash, once those who hold leases have had time to say that they live. */
function recover(queue: MemoryQueue, leaseMs: number, { now, run, startedAt }: ClaimMoment): Crashes {
  const crashes: Crashes = { crashed: [], buried: [] }
  const first = queue.running.first
  if (first === undefined || first.leaseUntil > now) return crashes
  if (queue.run !== run) {
    queue.run = run
    // A server tells in whole seconds for how long it has been up.
    queue.sparesUntil = now - Math.floor((now - startedAt) / 1_000) * 1_000 + leaseMs
  }
  if (queue.sparesUntil > now) return crashes
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

/** Whether nothing is granted whatever is ready. */
function isClosed(queue: MemoryQueue, now: number): boolean {
  return queue.isStopped || queue.isFull || queue.opensAt > now
}

function take(queue: MemoryQueue, from: ClaimFrom, by: Claimer, at: ClaimMoment, load: ClaimLoad): Claim[] {
  const { limit, leaseMs = by.leaseMs, maxPayloads = Number.POSITIVE_INFINITY } = from
  const { worker, alone = false } = by
  const { now } = at
  let hasTaken = false
  const dealt = new MemoryFairShare(queue, at, load, (job) => {
    if (!hasTaken) queue.lastFence = nextFence(queue.lastFence, now)
    hasTaken = true
    const claim = { worker, fence: queue.lastFence, alone, leaseUntil: now + leaseMs }
    queue.take(job, claim, now, maxPayloads, load.most)
    return takenWeight(job)
  })
  deal(dealt, limit, alone)
  return dealt.taken.map(claimOf)
}

/** Of a queue that has nothing for this claimer: why, when that changes by itself, and whether the claimer leads. */
function changeWait(queue: MemoryQueue, by: Claimer, now: number): Wait[] {
  const of = placeOf(queue)
  if (queue.claimable(now) > 0 || (by.alone === true && queue.isOpenForSuspects(now))) return []
  const forMs = queue.isStopped ? undefined : queue.nextChangeMs(now)
  if (forMs !== undefined) queue.lead = leadAfter(queue.lead, by.worker, now + forMs, now)
  else if (queue.lead?.worker === by.worker) queue.lead = undefined
  if (queue.isStopped) return [{ ...of, reason: 'paused' }]
  const reason = reasonOf(queue, by, now)
  if (forMs === undefined) return [{ ...of, reason }]
  return [{ ...of, reason, forMs, ...leads(queue.lead?.worker === by.worker) }]
}

function reasonOf(queue: MemoryQueue, { alone = false }: Claimer, now: number): Wait['reason'] {
  if (queue.isFull) return 'full'
  const hasJob = queue.ready.size > 0 || (alone && queue.suspects.size > 0)
  if (hasJob && queue.opensAt > now) return 'throttled'
  if (queue.ready.size > 0) return hasShutLane(queue) ? 'throttled' : 'full'
  return queue.scheduled.size > 0 ? 'scheduled' : 'empty'
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
