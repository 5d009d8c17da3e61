/** The place of jobs that wait: another priority, another due time, and which jobs are there already. */

import { InvalidArgumentError } from '../../core/errors.js'
import { isPriority, type JobState, priorityForm } from '../../core/job/job.js'
import { describe } from '../../core/messages/describe.js'
import { callForms, callOptions } from '../../core/values/call-check.js'
import { defined } from '../../core/values/defined.js'
import { type Duration, durationMs, furthestMs } from '../../core/values/duration.js'
import { instantMistake, parseInstant } from '../../core/values/instant.js'
import type { NewPlace, StoredJob } from '../../stores/contract/job-records.js'

/** Another place for jobs that wait: a priority, a due time, or both. */
export interface PlaceChange {
  /** −32,768 … 32,767, higher first. Default: the job keeps its own. */
  readonly priority?: number | undefined
  /** The jobs are due after this time, on the store's clock; 0 is now. Not together with `runAt`. Default: it stays. */
  readonly delay?: Duration | undefined
  /** The jobs are due at this moment: a Date, or ISO-8601 text with a zone. Default: it stays. */
  readonly runAt?: Date | string | undefined
}

const checkPlace = callOptions('jobs.reschedule', {
  ...{ priority: callForms.own, delay: callForms.own, runAt: callForms.own },
})

/** The place as a store takes it. `now`: the wall clock, in ms. Throws `InvalidArgumentError`. */
export function placeOf(place: PlaceChange, now: number): NewPlace {
  checkPlace(place)
  const { priority, delay, runAt } = place
  if (priority !== undefined && !isPriority(priority))
    throw wrong(`priority must be ${priorityForm}; got ${describe(priority)}`)
  if (delay !== undefined && runAt !== undefined) throw wrong('give delay or runAt, not both')
  const delayMs = delay === undefined ? undefined : durationMs(delay, 'jobs.reschedule({ delay })')
  const at = runAt === undefined ? undefined : parseInstant(runAt)
  if (runAt !== undefined && at === undefined) throw wrong(`runAt ${instantMistake(runAt)}; got ${describe(runAt)}`)
  if (Math.max(delayMs ?? 0, (at ?? now) - now) > furthestMs)
    throw wrong('a job may be due at most 10 years from now: seconds may have been taken for milliseconds')
  const to = defined({ priority, delayMs, runAt: at })
  if (Object.keys(to).length === 0) throw wrong('say a priority, a delay or a runAt')
  return to
}

function wrong(what: string): InvalidArgumentError {
  return new InvalidArgumentError(`jobs.reschedule(): ${what}. Nothing was changed.`)
}

/** Whether the job is not there yet: one that has become ready is met again in that state, and stays then. */
export function isElsewhere({ priority, delayMs, runAt }: NewPlace, now: number): (job: StoredJob) => boolean {
  const isNow = runAt === undefined ? delayMs === 0 : runAt <= now
  const isDueSaid = runAt !== undefined || delayMs !== undefined
  return (job) =>
    (priority !== undefined && job.priority !== priority) || (isDueSaid && !(isNow && job.state === 'ready'))
}

/**
 * The order in which jobs of a state are gone through while they are put there. In the order of time, scheduled jobs that are
 * put off would come again behind the others, without end.
 */
export function orderBeside({ delayMs = 0, runAt }: NewPlace, state: JobState): 'id' | 'time' {
  return state === 'scheduled' && (runAt !== undefined || delayMs > 0) ? 'id' : 'time'
}
