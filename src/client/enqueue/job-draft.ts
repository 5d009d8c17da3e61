/**
 * A job draft: one new job, checked and encoded, not yet sent. Everything that needs no input is checked first, then the
 * input by the schema of its task; the schema's output becomes the draft.
 */

import { InvalidJobError, PayloadTooLargeError, UnsupportedByStoreError } from '../../core/errors.js'
import type { JobFields } from '../../core/job/job-fields.js'
import { type StoredOrigin, storedMeta } from '../../core/job/job-origin.js'
import { describe, messageOf } from '../../core/messages/describe.js'
import type { Packing } from '../../core/packing/packing.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { made, type SchemaResult, validated, validatedNow } from '../../core/task/schema.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import { type Payload, payloadBytes } from '../../core/values/codec.js'
import { durationForm, furthestMs, parseDuration } from '../../core/values/duration.js'
import { groupMistake, groupNameOf, idMistake, orderedIdOf } from '../../core/values/ids.js'
import { instantMistake, parseInstant } from '../../core/values/instant.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { StoreTraits } from '../../stores/contract/store.js'
import { withoutDeaths } from '../store-facets.js'
import { type CheckedAgainst, checkedQueue, nameOf, wrong } from './draft-checks.js'
import type { DraftWarnings } from './draft-warnings.js'

/** The parts of the mill that a draft needs. */
export interface DraftEnvironment extends CheckedAgainst {
  readonly packing: Packing
  readonly maxPayloadBytes: number
  readonly idempotencyMs: number
  readonly warnings: DraftWarnings
  readonly newId: () => string
}

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

/**
 * Checks and encodes one job; a promise only if its task has a schema. Throws `UnknownTaskError`, `InvalidJobError`,
 * `PayloadTooLargeError`, `UnknownQueueError` or `UnsupportedByStoreError`; nothing was stored then.
 */
export function draftJob(item: EnqueueItem, rules: DraftEnvironment): JobDraft | Promise<JobDraft> {
  const { task, input } = item
  const draft = checkedDraft(item, rules)
  if (task.input === undefined) return draft(item)
  return validated(task.input, input, inputOf(task))
    .then((output) => madeInput(task, input, output, rules))
    .then(draft)
}

/** Like `draftJob`, but the input is stored as it was given, for many jobs that must not share what the schema makes. */
export async function draftGivenJob(item: EnqueueItem, rules: DraftEnvironment): Promise<JobDraft> {
  const { task, input } = item
  const draft = checkedDraft(item, rules)
  if (task.input !== undefined) await validated(task.input, input, inputOf(task))
  return draft(item)
}

/** Like `draftJob`, but synchronous. Also throws `InvalidJobError` if the schema of its task is asynchronous. */
export function draftJobNow(item: EnqueueItem, rules: DraftEnvironment): JobDraft {
  const { task, input } = item
  const draft = checkedDraft(item, rules)
  if (task.input === undefined) return draft(item)
  const output = validatedNow(task.input, input, inputOf(task))
  // A schema that has answered at once does so again.
  return draft(madeInput(task, input, output, rules) as MadeInput)
}

function inputOf(task: AnyTask): string {
  return `the input of a ${nameOf(task)}`
}

/** A function that makes the draft once the input is known to be valid. It is given the input to be stored. */
function checkedDraft(item: EnqueueItem, rules: DraftEnvironment): (made: MadeInput) => JobDraft {
  const { task } = item
  const queue = checkedQueue(item, rules)
  return (made) =>
    task.kind === 'ordered' ? orderedDraft(task, item, made, rules) : plainDraft(task, item, made, queue.name, rules)
}

/** `input`: what is stored; `payload`: the same, encoded, if that is known already. */
interface MadeInput {
  readonly input: unknown
  readonly payload?: Payload
}

/**
 * The input that is stored: what the task's schema made of the given one, so that every attempt gets the same defaults.
 *
 * A worker validates the stored input again, because its version of the schema may be another. What is stored must
 * therefore be an input of the schema: its output is one if the schema leaves it as it is. That holds for defaults,
 * coercions, trimmed texts and removed keys. It does not hold for a transform such as text to number, and not for an
 * output that cannot be encoded: the given input is then stored, and the schema runs for each attempt.
 *
 * `output`: what the schema made of `input`. A promise only if the schema answers with one.
 */
function madeInput(
  task: AnyTask,
  input: unknown,
  output: unknown,
  rules: DraftEnvironment,
): MadeInput | Promise<MadeInput> {
  const payload = encodedOr(rules, output)
  if (payload === undefined) return { input }
  if (output === input || isSame(payload, encodedOr(rules, input))) return { input: output, payload }
  return after(made(task.input!, output), (again) =>
    isSame(payload, payloadOf(again, rules)) ? { input: output, payload } : givenInput(task, input, payload, rules),
  )
}

/** The input as it was given, for a schema whose output is no input. It must then make the same for each attempt. */
function givenInput(
  task: AnyTask,
  input: unknown,
  payload: Payload,
  rules: DraftEnvironment,
): MadeInput | Promise<MadeInput> {
  return after(made(task.input!, input), (again) => {
    if (!isSame(payload, payloadOf(again, rules))) rules.warnings.schemaVaries(task)
    return { input }
  })
}

function after<From, To>(from: From | Promise<From>, next: (from: From) => To | Promise<To>): To | Promise<To> {
  return from instanceof Promise ? from.then(next) : next(from)
}

function payloadOf(result: SchemaResult<unknown>, rules: DraftEnvironment): Payload | undefined {
  return result.issues === undefined ? encodedOr(rules, result.value) : undefined
}

/** Undefined if the value cannot be encoded. */
function encodedOr({ packing }: DraftEnvironment, value: unknown): Payload | undefined {
  try {
    return packing.encode(value)
  } catch {
    return undefined
  }
}

function isSame(a: Payload, b: Payload | undefined): boolean {
  if (typeof a === 'string' || typeof b === 'string' || b === undefined) return a === b
  return Buffer.compare(a, b) === 0
}

function plainDraft(
  task: AnyPlainTask,
  item: EnqueueItem,
  made: MadeInput,
  queue: string,
  rules: DraftEnvironment,
): JobDraft {
  const { input, options, child } = item
  // Text, otherwise it would be refused by now.
  const given = options.id as string | undefined
  const id = given ?? child
  const payload = made.payload ?? encoded(rules, task, 'input', made.input)
  const rememberMs = id === undefined ? 0 : memoryMs(task, options, rules)
  const job = new JobInMaking(id ?? rules.newId(), task.name, payload, options.priority ?? 0, rememberMs)
  if (options.group !== undefined || task.group !== undefined) {
    const named = options.group === undefined ? answerOf(task, 'group', () => task.group?.(input)) : options.group
    const group = checkedGroup(task, named, rules)
    if (group !== undefined) job.group = group
  }
  if (options.ifWaiting === 'replace') job.ifWaiting = 'replace'
  if (task.onDead !== undefined) job.reportsDeath = reportsDeath(task, rules)
  if (options.fields !== undefined && Object.keys(options.fields).length > 0) job.fields = { ...options.fields }
  const bytes = addContent(job, queue, task, options, originOf(item), rules)
  const expiresMs = expiryOf(task, options, job, rules)
  if (expiresMs !== undefined) {
    job.expiresMs = expiresMs
    rules.warnings.expires(task, expiresMs)
  }
  if (options.atMost !== undefined) job.atMostMs = checkedBound(task, options, job)
  return new JobDraft(queue, job, bytes, id === undefined)
}

function originOf({ origin, schedule }: EnqueueItem): StoredOrigin | undefined {
  return schedule === undefined ? origin : { ...origin, schedule }
}

/** How long a child is remembered after its end, or `idempotency` if that is longer: its parent may run again. */
const childMemoryMs = 3_600_000
/**
 * The memory of an id that may come again at once: practically none. 0 ms is reserved for ids that never come again.
 */
const shortestMemoryMs = 1

/**
 * How long an id is remembered after its job has ended, if a user gave it or it follows from a parent. Throws
 * `InvalidJobError`.
 */
function memoryMs(task: AnyPlainTask, options: AnyEnqueueOptions, rules: DraftEnvironment): number {
  const { id, ifWaiting, idempotency } = options
  const ownMs = idempotency === undefined ? undefined : parseDuration(idempotency)
  if (idempotency !== undefined && ownMs === undefined)
    throw wrong(task, `idempotency must be ${durationForm}; got ${describe(idempotency)}.`)
  if (ownMs !== undefined) return Math.max(ownMs, shortestMemoryMs)
  // An enqueue after its end is another change, not the same job again.
  if (ifWaiting === 'replace') return shortestMemoryMs
  return Math.max(id === undefined ? childMemoryMs : shortestMemoryMs, task.idempotencyMs ?? rules.idempotencyMs)
}

/**
 * The expiry in ms, as the enqueue or else its task has it; undefined for none. A job that expires before it is due
 * would never run. Throws `InvalidJobError` or `UnsupportedByStoreError`.
 */
function expiryOf(
  task: AnyPlainTask,
  { expiresIn = task.expiresInMs, runAt }: AnyEnqueueOptions,
  { delayMs = 0 }: Pick<JobInMaking, 'delayMs'>,
  { traits }: DraftEnvironment,
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

/** Throws `UnsupportedByStoreError`. */
function reportsDeath({ name }: AnyPlainTask, { traits }: DraftEnvironment): true {
  if (traits.deaths) return true
  throw new UnsupportedByStoreError(traits.name, `\`onDead\` of task '${name}'`, withoutDeaths)
}

/** The bound of a debounce, in ms. Throws `InvalidJobError`. */
function checkedBound(
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

function orderedDraft(
  task: AnyOrderedTask,
  { input, options, origin, child }: EnqueueItem,
  made: MadeInput,
  rules: DraftEnvironment,
): JobDraft {
  const score = scoreOf(task, input, options)
  const payload = made.payload ?? encoded(rules, task, 'input', made.input)
  const job = new JobInMaking(orderedId(task, input, options), task.name, payload, 0, 0)
  if (score !== undefined) job.score = score
  else if (child !== undefined) job.arrival = child
  if (task.group !== undefined) {
    // From its id alone, so that all payloads of an id have the same group.
    const group = checkedGroup(
      task,
      answerOf(task, 'group', () => task.group?.(job.id)),
      rules,
    )
    if (group !== undefined) job.group = group
  }
  return new JobDraft(task.queue, job, addContent(job, task.queue, task, options, origin, rules), false)
}

function orderedId(task: AnyOrderedTask, input: unknown, options: AnyEnqueueOptions): string {
  if (options.id === undefined && task.id === undefined)
    throw wrong(
      task,
      'an ordered job needs an id, under which its payloads are gathered. Give one when you enqueue, as { id }, or define the task with id: (input) => ….',
    )
  const given = options.id === undefined ? answerOf(task, 'id', () => task.id?.(input)) : options.id
  const id = orderedIdOf(given)
  if (id === undefined) throw wrong(task, `id ${idMistake(given, true)}`)
  return id
}

function scoreOf(task: AnyOrderedTask, input: unknown, options: AnyEnqueueOptions): number | undefined {
  if (options.score === undefined && task.score === undefined) return undefined
  const score: unknown =
    options.score === undefined ? answerOf(task, 'score', () => task.score?.(input)) : options.score
  if (typeof score === 'number' && Number.isFinite(score)) return score
  throw wrong(task, `score must be a finite number; got ${describe(score)}.${scoreHint(score)}`)
}

/** The commonest score is a time of change. */
function scoreHint(score: unknown): string {
  if (score instanceof Date) return ' Give the time of a Date: date.getTime().'
  if (typeof score === 'string')
    return ' Give a text of a time as Date.parse(text), and one of a number as Number(text).'
  if (typeof score === 'bigint') return ' Give Number(score), which is exact up to 2^53.'
  return ''
}

/** A job whose optional parts are not all set yet. */
class JobInMaking implements NewJob {
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
  declare fields?: JobFields
  declare reportsDeath?: true

  constructor(id: string, task: string, payload: Payload, priority: number, rememberMs: number) {
    this.id = id
    this.task = task
    this.payload = payload
    this.priority = priority
    this.rememberMs = rememberMs
  }
}

/** The group; undefined for none. Throws `InvalidJobError` or `UnsupportedByStoreError`. */
function checkedGroup(task: AnyTask, given: unknown, { traits }: DraftEnvironment): string | undefined {
  const group = groupNameOf(given)
  if (group === undefined) throw wrong(task, `group ${groupMistake(given)}`)
  if (group === '') return undefined
  if (traits.groups) return group
  throw new UnsupportedByStoreError(traits.name, 'groups', 'Leave `group` out, or use a store with groups.')
}

/** The return value of a function of the task. Throws `InvalidJobError` if the function throws. */
function answerOf(task: AnyTask, name: 'id' | 'score' | 'group', ask: () => unknown): unknown {
  try {
    return ask()
  } catch (error) {
    throw wrong(task, `its ${name}() threw: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Adds to the job its meta, origin and time, which jobs of every kind may have, and packs input and meta. Returns the
 * bytes of both in their stored form.
 */
function addContent(
  job: JobInMaking,
  queue: string,
  task: AnyTask,
  options: AnyEnqueueOptions,
  origin: StoredOrigin | undefined,
  rules: DraftEnvironment,
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
function encoded({ packing }: DraftEnvironment, task: AnyTask, part: string, value: unknown): Payload {
  try {
    return packing.encode(value)
  } catch (error) {
    throw new InvalidJobError(`the ${part} of a ${nameOf(task)} cannot be encoded: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/** The size of a part in its stored form, so compression makes room. Throws `PayloadTooLargeError`. */
function fittingBytes(
  payload: Payload,
  task: AnyTask,
  part: string,
  { maxPayloadBytes, traits }: DraftEnvironment,
): number {
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

function instantOf(task: AnyTask, runAt: unknown): number {
  const at = parseInstant(runAt)
  if (at !== undefined) return at
  throw wrong(task, `runAt ${instantMistake(runAt)}; got ${describe(runAt)}. For a time from now use delay.`)
}
