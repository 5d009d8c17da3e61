/** The start of an attempt, as it is told and counted. */

import type { Events } from '../../core/events.js'
import type { Claim } from '../../stores/contract/claim.js'
import { refOf } from './execution.js'

export function emitStarted(events: Events, claim: Claim, worker: string): void {
  events.counter?.started(claim.queue)
  // Nearly every job passes here: an event that nobody hears is not built.
  if (events.has('job.started')) events.emit('job.started', { ...refOf(claim), attempt: claim.attempt, worker })
}
