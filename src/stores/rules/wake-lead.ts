/**
 * The lead of a queue: the one claimer that asks again when something in the queue changes by itself — a job falls due, a
 * lease ends — while all others wait to be rung. Every store appoints leads by these rules; without them every idle
 * worker of a fleet would wake at the same moment for one job.
 */

export interface Lead {
  readonly worker: string
  /** When it will ask again, on the clock of the leases. */
  readonly wakeAt: number
}

/** How long after its time a lead is waited for. */
export const leadLapseMs = 1_000

/** How long the lead of the suspects may take to make room for one before it must ask again. */
export const suspectLeadMs = 5_000

/** Whether somebody can be relied on to ask when `lead` said so. */
export function isLed(lead: Lead | undefined, now: number): lead is Lead {
  return lead !== undefined && now <= lead.wakeAt + leadLapseMs
}

/** Whether somebody can be relied on to ask for what is due now: a lead that comes much later knows nothing of it. */
export function asksNow(lead: Lead | undefined, now: number): boolean {
  return isLed(lead, now) && lead.wakeAt <= now + leadLapseMs
}

/** Whether `worker` has just asked at its time: it leads no longer once it was granted something, as it may have no room to ask again. */
export function hasLed(lead: Lead | undefined, worker: string, now: number): boolean {
  return lead?.worker === worker && lead.wakeAt <= now
}

/**
 * Who leads once `worker` has been told to come back at `wakeAt`: itself where nobody leads, where it led already, where
 * the lead has lapsed, or where the lead would come too late.
 */
export function leadAfter(lead: Lead | undefined, worker: string, wakeAt: number, now: number): Lead {
  if (isLed(lead, now) && lead.worker !== worker && lead.wakeAt <= wakeAt) return lead
  return { worker, wakeAt }
}

/**
 * Who leads the suspects of a queue once `worker` was told of them: itself where nobody does. It leads on only as long as
 * it takes nothing in company: one that goes on with other jobs, because it cannot make room, is followed by another.
 */
export function suspectLeadAfter(lead: Lead | undefined, worker: string, makesRoom: boolean, now: number): Lead {
  if (isLed(lead, now) && !(lead.worker === worker && makesRoom)) return lead
  return { worker, wakeAt: now + suspectLeadMs }
}
