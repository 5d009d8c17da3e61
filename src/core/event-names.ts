/** The names of events, and the refusal of any other name, since a listener for it would never be called. */

import { InvalidArgumentError } from './errors.js'
import type { EventName } from './events.js'
import { describe } from './values/describe.js'
import { probablyMeant } from './values/spelling.js'

const known: Readonly<Record<EventName, true>> = {
  'job.enqueued': true,
  'job.dropped': true,
  'job.started': true,
  'job.progressed': true,
  'job.completed': true,
  'job.failed': true,
  'job.buried': true,
  'job.released': true,
  'job.cancelled': true,
  'job.crashed': true,
  'job.adopted': true,
  'job.detached': true,
  'job.slow': true,
  'settle.refused': true,
  'lease.lost': true,
  'heap.unwatched': true,
  'env.withheld': true,
  'process.failed': true,
  'process.ended': true,
  'remains.ended': true,
  'permit.wasted': true,
  'start.late': true,
  'result.dropped': true,
  'slot.retired': true,
  'loop.blocked': true,
  'queue.claimed': true,
  'queue.damaged': true,
  'queue.mended': true,
  'expiry.short': true,
  'schema.varied': true,
  'task.unknown': true,
  'group.missing': true,
  'schedule.ticked': true,
  'schedule.skipped': true,
  'schedule.missed': true,
  'schedule.refused': true,
  'schedule.reconciled': true,
  'schedule.foreign': true,
  'schedule.lost': true,
  'worker.started': true,
  'worker.stopped': true,
  'worker.ordered': true,
  'worker.recycling': true,
  'worker.failed': true,
  'store.failed': true,
  'store.strayed': true,
  'hook.failed': true,
}
const names = Object.keys(known) as EventName[]

/** Names that other queues use for some of them. */
const foreign: Readonly<Record<string, EventName>> = {
  active: 'job.started',
  error: 'store.failed',
  progress: 'job.progressed',
  stalled: 'job.crashed',
}

/** Throws `InvalidArgumentError` for a value that is not the name of an event. */
export function refuseNoEvent(name: unknown): void {
  if (typeof name === 'string' && Object.hasOwn(known, name)) return
  const meant = typeof name === 'string' ? meantBy(name) : undefined
  throw new InvalidArgumentError(
    `there is no event ${describe(name)}${meant === undefined ? '' : `; probably '${meant}' is meant`}. There are ${names.join(', ')}.`,
  )
}

function meantBy(name: string): EventName | undefined {
  const ofJobs = names.find((one) => one === `job.${name}`)
  if (ofJobs !== undefined) return ofJobs
  return Object.hasOwn(foreign, name) ? foreign[name] : (probablyMeant(name, names) as EventName | undefined)
}
