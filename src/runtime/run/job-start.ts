/** The start of an attempt: its event and its count. */

import type { Events } from '../../core/events.js'
import type { Claim } from '../../stores/contract/claim.js'
import { refOf } from './execution.js'

export function emitStarted(events: Events, claim: Claim, worker: string): void {
  events.counter?.started(claim.queue)
  // Nearly every job passes here: build no event that nobody hears.
  if (events.has('job.started')) events.emit('job.started', { ...refOf(claim), attempt: claim.attempt, worker })
}
