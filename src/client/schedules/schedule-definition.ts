/**
 * The definition of a schedule, with its job checked and encoded: how it is made, when it replaces the stored one, and
 * its job as one tick enqueues it.
 */

import { InvalidJobError, isMillraceError } from '../../core/errors.js'
import type { Packing } from '../../core/packing/packing.js'
import { sealedBy } from '../../core/packing/seal.js'
import type { CheckedSchedule } from '../../core/schedule/schedule-options.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import { made } from '../../core/task/schema.js'
import { defined } from '../../core/values/defined.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { ScheduleChange, ScheduleDefinition, StoredSchedule } from '../../stores/contract/schedules.js'
import { definitionText, jitterOf, placeOf } from '../../stores/rules/schedule-record.js'
import { type DraftEnvironment, draftGivenJob, draftJobNow, type JobDraft } from '../enqueue/job-draft.js'

/**
 * The definition of a schedule; `declaredBy` is absent for one that is set at run time. Until a tick names it, a plain
 * job has the name of its schedule. Throws the errors of enqueueing such a job, which name the schedule, and
 * `InvalidJobError` for a job that may expire before it is due because of its jitter.
 */
export async function scheduleDraft(
  name: string,
  schedule: CheckedSchedule,
  declaredBy: string | undefined,
  rules: DraftEnvironment,
): Promise<ScheduleDefinition> {
  try {
    return definitionOf(name, schedule, declaredBy, await draftGivenJob(itemOf(name, schedule), rules))
  } catch (error) {
    throw ofSchedule(name, error)
  }
}

/**
 * The mistake in the job of a schedule; undefined if there is none, or none that can be seen at once: a schema may
 * answer later.
 */
export function draftMistake(name: string, schedule: CheckedSchedule, rules: DraftEnvironment): string | undefined {
  const { task, input } = schedule
  if (task.input !== undefined && made(task.input, input) instanceof Promise) return undefined
  try {
    definitionOf(name, schedule, undefined, draftJobNow(itemOf(name, schedule), rules))
    return undefined
  } catch (error) {
    if (!isMillraceError(error)) throw error
    return error.message
  }
}

function itemOf(name: string, { task, input, enqueue }: CheckedSchedule): EnqueueItem {
  if (task.kind === 'ordered') return { task, input, options: enqueue }
  return { task, input, options: { ...enqueue, id: name }, schedule: name }
}

function definitionOf(
  name: string,
  { task, rule, onMissed, overlap, jitterMs }: CheckedSchedule,
  declaredBy: string | undefined,
  { queue, job }: JobDraft,
): ScheduleDefinition {
  const { id, runAt: _, ...rest } = job
  const { delayMs = 0, expiresMs = Number.POSITIVE_INFINITY } = job
  if (delayMs + jitterMs >= expiresMs)
    throw new InvalidJobError(
      `expiresIn (${expiresMs} ms) must be longer than delay and jitter together (${delayMs + jitterMs} ms), or a job may expire before it is due.`,
    )
  return {
    ...{ name, queue, rule, onMissed, overlap, jitterMs },
    ...defined({ declaredBy }),
    job: task.kind === 'ordered' ? { ...rest, id } : rest,
  }
}

/** The same error, whose message begins with the schedule: many schedules may have one task. */
function ofSchedule(name: string, error: unknown): unknown {
  if (!isMillraceError(error)) return error
  const { message, stack } = error
  error.message = `schedule '${name}': ${message}`
  if (stack !== undefined) error.stack = stack.replace(message, () => error.message)
  return error
}

/**
 * The record that replaces the stored one; undefined if it is stored already. A schedule keeps its pause and, as long as
 * its rule is the same, its next tick, even an overdue one. One that another key has sealed, or none, is replaced by the
 * same under the present key.
 */
export function changeTo(
  definition: ScheduleDefinition,
  stored: StoredSchedule | undefined,
  now: number,
  { newId, packing }: { readonly newId: () => string; readonly packing: Packing },
): ScheduleChange | undefined {
  const paused = stored?.paused ?? false
  const isSameRule = stored !== undefined && JSON.stringify(stored.definition.rule) === JSON.stringify(definition.rule)
  const nextAt = paused ? undefined : ((isSameRule ? stored.nextAt : undefined) ?? nextTick(definition, stored, now))
  const isSame =
    stored !== undefined &&
    sealingKeyOf(stored.definition) === sealingKeyOf(definition) &&
    plainText(stored.definition, packing) === plainText(definition, packing)
  // A process that was moving it to another queue may have died half way; then it has no next tick.
  if (isSame && stored.nextAt === nextAt) return undefined
  return { definition, revision: newId(), paused, ...defined({ nextAt }) }
}

/** The id of the key that has sealed its job; undefined: none has. */
export function sealingKeyOf({ job }: ScheduleDefinition): string | undefined {
  return isSealed(job) ? sealedBy(job.payload) : undefined
}

/** The definition as plain text. A definition that cannot be read equals no other. */
function plainText(definition: ScheduleDefinition, packing: Packing): string {
  try {
    return definitionText({ ...definition, job: openedJob(definition, packing) })
  } catch {
    return definitionText(definition)
  }
}

/** If the clock was set back by more, past ticks come again; otherwise no instant ticks twice. */
export const setBackMs = 60_000

/** The first tick from now on. */
export function nextTick(
  { rule }: Pick<ScheduleDefinition, 'rule'>,
  stored: Pick<StoredSchedule, 'lastAt'> | undefined,
  now: number,
): number | undefined {
  const lastAt = stored?.lastAt ?? now
  return ticksOf(rule).next(lastAt > now && lastAt <= now + setBackMs ? lastAt : now)
}

/**
 * The job with this id, unless it is ordered and has its own. A seal is bound to the id of its job, so the job is
 * sealed anew. Throws `CodecError` if this mill cannot do that.
 */
export function scheduledJob({ definition }: Pick<StoredSchedule, 'definition'>, id: string, packing: Packing): NewJob {
  const { queue, job, jitterMs } = definition
  const delayMs = (job.delayMs ?? 0) + jitterOf(id, jitterMs)
  const due = delayMs === 0 ? {} : { delayMs }
  if (job.id !== undefined) return { ...job, ...due, id: job.id }
  if (!isSealed(job)) return { ...job, ...due, id }
  const sealed = { ...openedJob(definition, packing), ...due, id }
  packing.packJob(sealed, queue, false)
  return sealed
}

/**
 * The job without its seal, which is different each time; the steps before sealing are undone too. Throws `CodecError`.
 */
function openedJob(definition: ScheduleDefinition, packing: Packing): ScheduleDefinition['job'] {
  const { queue, job } = definition
  if (!isSealed(job)) return job
  const owner = { ...job, queue, id: placeOf(definition) }
  const [payloadPart, metaPart] = partsOf(job)
  const { codec, payload, meta: _sealed, ...rest } = job
  const meta = packing.unpackMeta(job, metaPart, owner)
  return {
    ...rest,
    payload: packing.encode(packing.unpack(payload, codec, payloadPart, owner)),
    ...(meta === undefined ? {} : { meta: packing.encode(meta) }),
  }
}

/** The parts that payload and meta of the job are. */
export function partsOf({ id }: ScheduleDefinition['job']) {
  return id === undefined ? (['payload', 'meta'] as const) : (['ordered payload', 'ordered meta'] as const)
}

function isSealed({ codec }: ScheduleDefinition['job']): boolean {
  return codec?.endsWith('+sealed') ?? false
}
