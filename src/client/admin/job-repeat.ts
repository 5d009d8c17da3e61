/** The repeat of a job: another one enqueued like it, or, of a dead job, one in its place with another input. */

import { CodecError, InvalidArgumentError } from '../../core/errors.js'
import type { JobHandle, JobRecord } from '../../core/job/job.js'
import { messageOf } from '../../core/messages/describe.js'
import type { Packing } from '../../core/packing/packing.js'
import type { Registry } from '../../core/registry.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import { defined } from '../../core/values/defined.js'
import type { StoredJob } from '../../stores/contract/job-records.js'
import { recordOf } from '../jobs/job-record.js'

/**
 * What enqueues a job as the mill does.
 * @internal
 */
export interface Repeater {
  readonly enqueue: (item: EnqueueItem) => Promise<JobHandle>
  /** How long ids are remembered, if their tasks do not say. */
  readonly idempotencyMs: number
}

interface RepeatParts extends Repeater {
  readonly packing: Packing
  readonly registry: Registry
}

/** `{ input }` if another input was given, which may be undefined. */
export type OtherInput = { readonly input?: unknown }

/** Whether nothing but the id and the end of the job is kept. A kept job that completed has a result, if only an empty one. */
function isBare({ state, payload, result }: StoredJob): boolean {
  return (state === 'completed' || state === 'cancelled') && result === undefined && payload.length === 0
}

/**
 * Enqueues a job like this one under a new id: of its task, in its queue, with its meta and priority, and with its input or
 * the given one. With another input its task says the group anew. Undefined if too little is kept of the job. Throws
 * `InvalidArgumentError` for a join or an ordered job, `CodecError` for an input that cannot be read, and the errors of an
 * enqueue.
 */
export async function enqueuedAgain(
  job: StoredJob | undefined,
  other: OtherInput,
  parts: RepeatParts,
): Promise<JobHandle | undefined> {
  if (job === undefined || isBare(job)) return undefined
  const { queue, id, task: name } = job
  refuseOrdered(job, 'jobs.enqueueAgain')
  if (job.isJoin)
    throw refusal(job, 'jobs.enqueueAgain', 'waits for other jobs, which would have to be enqueued with it by `after`')
  const item = itemLike(job, other, parts)
  return parts.enqueue({ ...item, origin: { repeatOf: { queue, id, task: name } } })
}

/**
 * Puts a new job with this input in the place of a dead one, under its id: all of the dead job but its task, meta,
 * priority and origin goes. Resolves to 0 if there is no dead job, or it runs meanwhile. Throws `InvalidArgumentError` if
 * something of its runs would be lost, or the job is a join, a member of one or ordered; and the errors of an enqueue.
 */
export async function revivedWith(
  dead: StoredJob | undefined,
  other: Required<OtherInput>,
  parts: RepeatParts,
): Promise<0 | 1> {
  if (dead === undefined) return 0
  refuseOrdered(dead, 'morgue.revive')
  const why = whyBound(dead)
  if (why !== undefined)
    throw refusal(
      dead,
      'morgue.revive',
      `${why}: revive it as it is, or enqueue another one by jobs.enqueueAgain()`,
      'input',
    )
  const item = itemLike(dead, other, parts)
  const ownMs = item.task.kind === 'plain' ? item.task.idempotencyMs : undefined
  const place = { id: dead.id, ifWaiting: 'replace', idempotency: ownMs ?? parts.idempotencyMs } as const
  const { outcome } = await parts.enqueue({
    ...item,
    options: { ...item.options, ...place },
    ...originOf(recordOf(dead, parts.packing)),
  })
  return outcome === 'duplicate' ? 0 : 1
}

/** Why a dead job belongs to its input; undefined if it does not. */
function whyBound(job: StoredJob): string | undefined {
  if (job.isJoin) return 'waits for other jobs, which belong to its input'
  if (job.memberOf !== undefined) return 'is waited for by another job, which was enqueued with its input'
  if (job.hasSteps) return 'has steps that its runs have made of its input'
  if (job.checkpoint !== undefined) return 'has a checkpoint that its runs have made of its input'
  return undefined
}

function refuseOrdered(job: StoredJob, call: string): void {
  if (job.payloads !== undefined)
    throw refusal(
      job,
      call,
      'is ordered, and has payloads instead of one input: enqueue another payload by mill.enqueue(task, input, { id })',
    )
}

function refusal({ queue, id }: StoredJob, call: string, why: string, option?: string): InvalidArgumentError {
  const said = option === undefined ? `${call}()` : `${call}({ ${option} })`
  return new InvalidArgumentError(
    `${said} cannot take job '${id}' in queue '${queue}': it ${why}. Nothing was changed.`,
  )
}

/** A new job of the same task and queue, with the same meta and priority. */
function itemLike(job: StoredJob, other: OtherInput, { packing, registry }: RepeatParts): EnqueueItem {
  const { queue, priority } = job
  const task = registry.named(job.task, queue)
  const isOther = Object.hasOwn(other, 'input')
  const { meta } = recordOf(job, packing)
  const group = isOther && task.group !== undefined ? undefined : job.group
  return {
    task,
    input: isOther ? other.input : storedInput(job, packing),
    options: {
      ...defined({ meta, group }),
      ...(priority !== 0 && { priority }),
      ...(queue !== task.queue && { queue }),
    },
  }
}

function storedInput(job: StoredJob, packing: Packing): unknown {
  if (job.payload.length === 0) return undefined
  try {
    return packing.unpack(job.payload, job.codec, 'payload', job)
  } catch (error) {
    throw new CodecError(
      `the input of job '${job.id}' in queue '${job.queue}' cannot be read: ${messageOf(error).replace(/\.$/, '')}. Give another input.`,
      { cause: error },
    )
  }
}

/** Where the job came from. */
function originOf({ parent, repeatOf, trace, schedule }: JobRecord): Pick<EnqueueItem, 'origin' | 'schedule'> {
  const origin = defined({ parent, repeatOf, trace })
  return {
    ...(Object.keys(origin).length > 0 && { origin }),
    ...(schedule !== undefined && { schedule: schedule.name }),
  }
}
