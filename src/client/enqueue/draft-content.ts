/** The content of a draft, for any kind of job: its checked and encoded input, meta and group, and its due time. */

import { InvalidJobError, PayloadTooLargeError, UnsupportedByStoreError } from '../../core/errors.js'
import { originKey, type StoredOrigin, storedMeta } from '../../core/job-origin.js'
import type { Packing } from '../../core/packing/packing.js'
import type { Registry } from '../../core/registry.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import { type Payload, payloadBytes } from '../../core/values/codec.js'
import { describe, messageOf } from '../../core/values/describe.js'
import { durationForm, furthestMs, parseDuration } from '../../core/values/duration.js'
import { hintFor } from '../../core/values/foreign-words.js'
import { groupMistake, groupNameOf } from '../../core/values/ids.js'
import { instantMistake, parseInstant } from '../../core/values/instant.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { StoreTraits } from '../../stores/contract/store.js'
import type { DraftWarnings } from './draft-warnings.js'

export class JobDraft {
  readonly queue: string
  readonly job: NewJob
  readonly bytes: number
  /** Whether the id was generated for this job alone. */
  readonly isIdNew: boolean

  constructor(queue: string, job: NewJob, bytes: number, isIdNew: boolean) {
    this.queue = queue
    this.job = job
    this.bytes = bytes
    this.isIdNew = isIdNew
  }
}

export interface DraftRules {
  readonly registry: Registry
  /** Names of tasks that only workers elsewhere know. */
  readonly tasksElsewhere: readonly string[]
  readonly packing: Packing
  readonly traits: StoreTraits
  readonly maxPayloadBytes: number
  readonly idempotencyMs: number
  readonly warnings: DraftWarnings
  readonly newId: () => string
}

/** A job whose optional parts are not all set yet. */
export class JobInMaking implements NewJob {
  readonly id: string
  readonly task: string
  payload: Payload
  readonly priority: number
  readonly rememberMs: number
  declare codec?: string
  declare meta?: Payload
  declare group?: string
  declare score?: number
  declare arrival?: string
  declare delayMs?: number
  declare runAt?: number
  declare expiresMs?: number
  declare atMostMs?: number
  declare ifWaiting?: 'replace'

  constructor(id: string, task: string, payload: Payload, priority: number, rememberMs: number) {
    this.id = id
    this.task = task
    this.payload = payload
    this.priority = priority
    this.rememberMs = rememberMs
  }
}

/** The name of the job in messages. */
export function nameOf(task: AnyTask): string {
  return `job of task '${task.name}'`
}

/** The error that refuses the job. */
export function wrong(task: AnyTask, message: string, options?: ErrorOptions): InvalidJobError {
  return new InvalidJobError(`${nameOf(task)}: ${message}`, options)
}

/** Refuses unknown options, and a meta that is not an object. */
export function checkOptions(task: AnyTask, options: AnyEnqueueOptions, known: ReadonlySet<string>): void {
  if (typeof options !== 'object' || options === null)
    throw wrong(task, `options must be an object; got ${describe(options)}.`)
  for (const name of Object.keys(options)) if (!known.has(name)) throw unknownOption(task, name, known)
  const { meta } = options
  if (meta !== undefined && (typeof meta !== 'object' || meta === null || Array.isArray(meta)))
    throw wrong(task, 'meta must be a plain object.')
  if (meta !== undefined && Object.hasOwn(meta, originKey))
    throw wrong(task, `meta must have no key '${originKey}': it holds the origin of a job. Use another name.`)
}

function unknownOption(task: AnyTask, name: string, known: ReadonlySet<string>): InvalidJobError {
  const where = task.kind === 'ordered' ? 'enqueue for an ordered task' : 'enqueue'
  return wrong(task, `'${name}' is not an option of ${where}; known are ${[...known].join(', ')}${hintFor(name)}.`)
}

/**
 * Adds to the job its meta, origin and time, which jobs of every kind may have, and packs input and meta. Returns the
 * bytes of both in their stored form.
 */
export function addContent(
  job: JobInMaking,
  queue: string,
  task: AnyTask,
  options: AnyEnqueueOptions,
  origin: StoredOrigin | undefined,
  rules: DraftRules,
): number {
  const { delay, runAt } = options
  // A job that may take the place of another has a life of its own: its children are not those of the other.
  const stored = options.ifWaiting === 'replace' ? { ...origin, life: rules.newId() } : origin
  const meta = storedMeta(options.meta, stored)
  if (meta !== undefined) job.meta = encoded(rules, task, 'meta', meta)
  rules.packing.packJob(job, queue, task.kind === 'ordered')
  let bytes = fittingBytes(job.payload, task, 'input', rules)
  if (job.meta !== undefined) bytes += fittingBytes(job.meta, task, 'meta', rules)
  if (delay !== undefined || runAt !== undefined) Object.assign(job, due(task, options, rules.traits))
  return bytes
}

/** The encoded part. `part`: `'input'` or `'meta'`. */
export function encoded({ packing }: DraftRules, task: AnyTask, part: string, value: unknown): Payload {
  try {
    return packing.encode(value)
  } catch (error) {
    throw new InvalidJobError(`the ${part} of a ${nameOf(task)} cannot be encoded: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/** The size of a part in its stored form, so compression makes room. Throws `PayloadTooLargeError`. */
function fittingBytes(payload: Payload, task: AnyTask, part: string, { maxPayloadBytes, traits }: DraftRules): number {
  const bytes = payloadBytes(payload)
  const limit = Math.min(maxPayloadBytes, traits.maxPayloadBytes)
  if (bytes > limit) throw new PayloadTooLargeError(`the ${part} of a ${nameOf(task)}`, bytes, limit)
  return bytes
}

function due(task: AnyTask, options: AnyEnqueueOptions, traits: StoreTraits): { delayMs?: number; runAt?: number } {
  const { delay, runAt } = options
  if (delay !== undefined && runAt !== undefined) throw wrong(task, 'give delay or runAt, not both.')
  if (delay !== undefined) {
    const delayMs = parseDuration(delay)
    if (delayMs === undefined) throw wrong(task, `delay must be ${durationForm}; got ${describe(delay)}.`)
    const mostMs = Math.min(furthestMs, traits.maxDelayMs)
    if (delayMs > mostMs)
      throw wrong(task, `a delay of ${delayMs} ms is longer than ${mostMs} ms, the longest possible.`)
    return delayMs === 0 ? {} : { delayMs }
  }
  if (runAt !== undefined) return { runAt: instantOf(task, runAt) }
  return {}
}

/**
 * The expiry in ms, as the enqueue or else its task has it; undefined for none. A job that expires before it is due
 * would never run. Throws `InvalidJobError` or `UnsupportedByStoreError`.
 */
export function expiryOf(
  task: AnyPlainTask,
  { expiresIn = task.expiresInMs, runAt }: AnyEnqueueOptions,
  { delayMs = 0 }: Pick<JobInMaking, 'delayMs'>,
  { traits }: DraftRules,
): number | undefined {
  if (expiresIn === undefined || expiresIn === 'never') return undefined
  const expiresMs = parseDuration(expiresIn)
  if (expiresMs === undefined || expiresMs === 0)
    throw wrong(task, `expiresIn must be ${durationForm}, above 0, or 'never'; got ${describe(expiresIn)}.`)
  if (!traits.expires) {
    const remedy =
      'Leave `expiresIn` out and let the handler compare `ctx.job.createdAt` with the time, or use a store that cancels such jobs.'
    throw new UnsupportedByStoreError(traits.name, 'jobs that expire', remedy)
  }
  if (runAt !== undefined)
    throw wrong(
      task,
      "expiresIn goes with delay, not with runAt, which cannot be compared with it. Give delay, or expiresIn: 'never'.",
    )
  if (expiresMs > furthestMs)
    throw wrong(task, `an expiresIn of ${expiresMs} ms is longer than ${furthestMs} ms, the longest possible.`)
  if (expiresMs <= delayMs)
    throw wrong(
      task,
      `expiresIn (${expiresMs} ms) must be longer than delay (${delayMs} ms), or the job would expire before it is due.`,
    )
  return expiresMs
}

/** The bound of a debounce, in ms. Throws `InvalidJobError`. */
export function checkedBound(
  task: AnyPlainTask,
  { atMost, ifWaiting, delay }: AnyEnqueueOptions,
  { delayMs = 0 }: Pick<JobInMaking, 'delayMs'>,
): number {
  const atMostMs = parseDuration(atMost)
  if (atMostMs === undefined) throw wrong(task, `atMost must be ${durationForm}; got ${describe(atMost)}.`)
  if (ifWaiting !== 'replace' || delay === undefined)
    throw wrong(task, "atMost bounds a delay that later enqueues put off: give it with delay and ifWaiting: 'replace'.")
  if (atMostMs < delayMs)
    throw wrong(task, `atMost (${atMostMs} ms) must be at least delay (${delayMs} ms), which it bounds.`)
  return atMostMs
}

function instantOf(task: AnyTask, runAt: unknown): number {
  const at = parseInstant(runAt)
  if (at !== undefined) return at
  throw wrong(task, `runAt ${instantMistake(runAt)}; got ${describe(runAt)}. For a time from now use delay.`)
}

/** The group; undefined for none. Throws `InvalidJobError` or `UnsupportedByStoreError`. */
export function checkedGroup(task: AnyTask, given: unknown, { traits }: DraftRules): string | undefined {
  const group = groupNameOf(given)
  if (group === undefined) throw wrong(task, `group ${groupMistake(given)}`)
  if (group === '') return undefined
  if (traits.groups) return group
  throw new UnsupportedByStoreError(traits.name, 'groups', 'Leave `group` out, or use a store with groups.')
}

/** The return value of a function of the task. Throws `InvalidJobError` if the function throws. */
export function answerOf(task: AnyTask, name: 'id' | 'score' | 'group', ask: () => unknown): unknown {
  try {
    return ask()
  } catch (error) {
    throw wrong(task, `its ${name}() threw: ${messageOf(error)}`, { cause: error })
  }
}
