/**
 * The lead of a queue: the one claimer that asks again when something in the queue changes by itself (a job falls due,
 * a lease ends), while all others wait to be rung. Every store appoints leads by these rules. Without them every idle
 * worker of a fleet would wake at the same moment for one job.
 */

export interface Lead {
  readonly worker: string
  /** When it will ask again, on the clock of the leases. */
  readonly wakeAt: number
}

/** How long a late lead is waited for. */
export const leadLapseMs = 1_000

/** How long the lead of the suspects may take to make room for one before it must ask again. */
export const suspectLeadMs = 5_000

/** Whether a lead will ask at its time. */
export function isLed(lead: Lead | undefined, now: number): lead is Lead {
  return lead !== undefined && now <= lead.wakeAt + leadLapseMs
}

/** Whether a lead will ask for a change that is due now: a lead that comes much later knows nothing of it. */
export function asksNow(lead: Lead | undefined, now: number): boolean {
  return isLed(lead, now) && lead.wakeAt <= now + leadLapseMs
}

/**
 * Whether `worker` has just asked at its time. It leads no longer once it was granted a job, as it may have no room to
 * ask again.
 */
export function hasLed(lead: Lead | undefined, worker: string, now: number): boolean {
  return lead?.worker === worker && lead.wakeAt <= now
}

/**
 * The lead once `worker` has been told to come back at `wakeAt`: the worker itself if nobody leads, if it led already,
 * if the lead has lapsed, or if the lead would come too late.
 */
export function leadAfter(lead: Lead | undefined, worker: string, wakeAt: number, now: number): Lead {
  if (isLed(lead, now) && lead.worker !== worker && lead.wakeAt <= wakeAt) return lead
  return { worker, wakeAt }
}

/**
 * The lead of the suspects once `worker` was told of them: the worker itself if nobody leads. It keeps the lead only
 * while it takes nothing in company: a worker that goes on with other jobs, because it cannot make room, is replaced.
 */
export function suspectLeadAfter(lead: Lead | undefined, worker: string, makesRoom: boolean, now: number): Lead {
  if (isLed(lead, now) && !(lead.worker === worker && makesRoom)) return lead
  return { worker, wakeAt: now + suspectLeadMs }
}
