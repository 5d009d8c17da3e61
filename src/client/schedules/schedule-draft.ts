/** A new schedule: its job checked and encoded, in the form that the store keeps. */

import { InvalidJobError } from '../../core/errors.js'
import type { CheckedSchedule } from '../../core/schedule/schedule-options.js'
import type { ScheduleDefinition } from '../../stores/contract/schedules.js'
import type { DraftRules } from '../enqueue/draft-content.js'
import { draftGivenJob } from '../enqueue/job-draft.js'

/**
 * The definition of a schedule. Until a tick names it, a plain job has the name of its schedule. Throws the errors of
 * enqueueing such a job, and `InvalidJobError` for a job that may expire before it is due because of its jitter.
 */
export async function scheduleDraft(
  name: string,
  { task, input, enqueue, rule, onMissed, overlap, jitterMs }: CheckedSchedule,
  isDeclared: boolean,
  rules: DraftRules,
): Promise<ScheduleDefinition> {
  const isOrdered = task.kind === 'ordered'
  const options = isOrdered ? enqueue : { ...enqueue, id: name }
  const { queue, job } = await draftGivenJob({ task, input, options }, rules)
  const { id, runAt: _, ...rest } = job
  const { delayMs = 0, expiresMs = Number.POSITIVE_INFINITY } = job
  if (delayMs + jitterMs >= expiresMs)
    throw new InvalidJobError(
      `schedule '${name}': expiresIn (${expiresMs} ms) must be longer than delay and jitter together (${delayMs + jitterMs} ms), or a job may expire before it is due.`,
    )
  return { name, queue, rule, onMissed, overlap, jitterMs, isDeclared, job: isOrdered ? { ...rest, id } : rest }
}
