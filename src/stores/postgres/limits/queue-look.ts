/** What a claim is told of a queue besides its jobs, and the leads that it may appoint. Pure. */

import type { LeftQueue } from '../../rules/claim-waits.js'

/** Instants are in ms; `place` is in µs. */
export interface LookedQueue {
  /** When the next job falls due, and when the first lease ends; null as well while ready jobs are left. */
  readonly place: number | null
  readonly lease: number | null
  /** Whether more jobs have expired than one claim ends. */
  readonly expiring: boolean
  /** It is paused, or being resharded. */
  readonly stopped: boolean
  readonly spares: number
  readonly lead: string | null
  readonly wake: number | null
  readonly suspectLead: string | null
  readonly suspectWake: number | null
  /** Whether somebody waits for the queue. */
  readonly waits: boolean
}

export type LeadColumns = [
  worker: string | null,
  at: number | null,
  suspectWorker: string | null,
  suspectAt: number | null,
]

type Led = Pick<LeftQueue, 'lead' | 'suspectLead'>

export function leadTexts({ lead, suspectLead }: Led): (string | null)[] {
  const text = (at: number | undefined) => (at === undefined ? null : String(at))
  return [lead?.worker ?? null, text(lead?.wakeAt), suspectLead?.worker ?? null, text(suspectLead?.wakeAt)]
}

export function followLeads(queue: Led, [worker, at, suspectWorker, suspectAt]: LeadColumns): void {
  queue.lead = worker === null || at === null ? undefined : { worker, wakeAt: at }
  queue.suspectLead =
    suspectWorker === null || suspectAt === null ? undefined : { worker: suspectWorker, wakeAt: suspectAt }
}
