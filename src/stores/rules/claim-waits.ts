/**
 * The waits of a claim: why a queue granted nothing, or nothing more, when that changes by itself, and who asks again
 * then. The stores in JavaScript use these functions; Lua has a translation.
 */

import type { Claimer, Wait } from '../contract/claim.js'
import { hasLed, type Lead, leadAfter, suspectLeadAfter, suspectLeadMs } from './wake-lead.js'

/** A queue, or a shard of an ordered one, after a claim. Instants are on the clock of the leases. */
export interface LeftQueue {
  readonly of: Pick<Wait, 'queue' | 'shard'>
  /** It is paused, or its jobs are being moved. */
  readonly isStopped: boolean
  /** As many jobs run as may, or a batch of the shard runs. */
  readonly isFull: boolean
  /** Whether it is full because a batch runs. */
  readonly isBusy: boolean
  /** When a hold or a throttle of the whole queue ends; not after now: it is open. */
  readonly opensAt: number
  /** The number of ready jobs without the suspects. */
  readonly ordinary: number
  readonly suspects: number
  readonly scheduled: number
  /** Whether the next claim would receive a job. */
  readonly isClaimable: boolean
  /** See `suspectInMs` in `fair-share`. */
  suspectInMs(): number
  /** Whether the lane of a group opens by itself. */
  hasShutLane(): boolean
  /** Ms until something changes by itself; undefined: nothing does. */
  nextChangeMs(): number | undefined
  lead: Lead | undefined
  suspectLead: Lead | undefined
}

/**
 * The waits in the answer to a claim of at most `limit` jobs, for a queue that granted `taken`; and whether to ring.
 * Each woken claimer wakes the next, so that one ring is enough for any number of jobs. Appoints the leads.
 */
export function waitsAfter(
  queue: LeftQueue,
  by: Claimer,
  { limit, taken }: { readonly limit: number; readonly taken: number },
  now: number,
): { readonly waits: Wait[]; readonly rings: boolean } {
  const { isClaimable, isStopped, isFull, isBusy, opensAt, ordinary } = queue
  // The jobs left are shut: a claimer must know when they open.
  const isShut = taken > 0 && ordinary > 0 && !isBusy && !isClaimable
  const isClosed = isStopped || isFull || opensAt > now
  // No job is left, and the claimer has room for more: told that now, it need not ask again to hear it.
  const isEmptied = taken > 0 && taken < limit && by.alone !== true && ordinary === 0 && !isClosed
  // The claimer may have no room to ask again. The claimer that is rung leads from then on.
  const hasLeft = (taken > 0 || isClaimable) && !isShut && !isEmptied && hasLed(queue.lead, by.worker, now)
  if (hasLeft) queue.lead = undefined
  const reports = reportsSuspects(queue, by, { limit, taken }, now)
  const suspectInMs = reports && queue.suspects > 0 ? queue.suspectInMs() : Number.POSITIVE_INFINITY
  const askInMs = isClosed ? Number.POSITIVE_INFINITY : suspectInMs
  const waits = [
    ...(taken === 0 || isShut || isEmptied ? changeWait(queue, by, askInMs, now) : []),
    ...(suspectInMs === 0 ? suspectWait(queue, by.worker, by.alone === true || limit === 0, now) : []),
  ]
  if (reports && queue.suspects === 0) queue.suspectLead = undefined
  return { waits, rings: isClaimable || hasLeft }
}

/** Whether the answer to a claim says that there are suspects, if one of them may start. */
export function reportsSuspects(
  { isStopped, isFull, opensAt, suspectLead }: LeftQueue,
  by: Claimer,
  { limit, taken }: { readonly limit: number; readonly taken: number },
  now: number,
): boolean {
  // A claim that leaves the queue closed reports them nonetheless: while there is a backlog, each claim may do that.
  if (taken > 0) return true
  if (isStopped || opensAt > now) return false
  // Their lead may itself hold the job that keeps the queue full.
  return !isFull || (limit === 0 && suspectLead?.worker === by.worker)
}

/** For a queue that has nothing for this claimer. */
function changeWait(queue: LeftQueue, by: Claimer, suspectInMs: number, now: number): Wait[] {
  const { of, isClaimable, isStopped } = queue
  if (isClaimable || (by.alone === true && suspectInMs === 0)) return []
  const reason = reasonOf(queue, by, now)
  const forMs = isStopped ? Number.POSITIVE_INFINITY : nextAskMs(queue, suspectInMs)
  if (forMs === Number.POSITIVE_INFINITY) {
    if (queue.lead?.worker === by.worker) queue.lead = undefined
    return [{ ...of, reason }]
  }
  const lead = leadAfter(queue.lead, by.worker, Math.min(now + forMs, Number.MAX_SAFE_INTEGER), now)
  queue.lead = lead
  return [{ ...of, reason, forMs, ...(lead.worker === by.worker ? { lead: true } : {}) }]
}

/** Ms until something changes by itself, be it that only a suspect may start; Infinity: nothing does. */
function nextAskMs(queue: LeftQueue, suspectInMs: number): number {
  const changeMs = queue.nextChangeMs() ?? Number.POSITIVE_INFINITY
  return suspectInMs > 0 ? Math.min(changeMs, suspectInMs) : changeMs
}

function reasonOf(queue: LeftQueue, { alone = false }: Claimer, now: number): Wait['reason'] {
  const { isStopped, isFull, opensAt, ordinary, suspects, scheduled } = queue
  if (isStopped) return 'paused'
  if (isFull) return 'full'
  if (opensAt > now && (ordinary > 0 || (alone && suspects > 0))) return 'throttled'
  if (ordinary > 0) return queue.hasShutLane() ? 'throttled' : 'full'
  return scheduled > 0 ? 'scheduled' : 'empty'
}

/** For a queue with a suspect left behind that may start: how long the lead of the suspects may take to make room for it. */
function suspectWait(queue: LeftQueue, worker: string, makesRoom: boolean, now: number): Wait[] {
  const before = queue.suspectLead
  const lead = suspectLeadAfter(before, worker, makesRoom, now)
  queue.suspectLead = lead
  return [{ ...queue.of, reason: 'suspect', forMs: suspectLeadMs, ...(lead === before ? {} : { lead: true }) }]
}
