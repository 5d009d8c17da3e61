/** A job draft: one job on its way in, checked and encoded, not yet sent. */

import { type Codec, encodedBy, type Payload, payloadBytes } from '../core/codec.js'
import { durationForm, formatDuration, parseDuration } from '../core/duration.js'
import type { EnqueueOptions } from '../core/enqueue-options.js'
import { InvalidJobError, PayloadTooLargeError, UnsupportedByStoreError } from '../core/errors.js'
import { isJobId, jobIdForm } from '../core/ids.js'
import { isPriority, priorityForm } from '../core/job.js'
import type { EnqueueItem } from '../core/middleware.js'
import type { Registry } from '../core/registry.js'
import { validated } from '../core/schema.js'
import { messageOf, shown } from '../core/shown.js'
import type { AnyTask } from '../core/task.js'
import type { NewJob, StoreTraits } from '../stores/store.js'

export interface JobDraft {
  readonly queue: string
  readonly job: NewJob
  readonly bytes: number
}

export interface DraftRules {
  readonly registry: Registry
  readonly codec: Codec
  readonly traits: StoreTraits
  readonly maxPayloadBytes: number
  readonly idempotencyMs: number
  readonly newId: () => string
}

const optionNames = new Set<string>(['id', 'delay', 'runAt', 'priority', 'meta', 'group', 'queue'])

/** Longest time ahead a job may be scheduled: beyond it a number of seconds or milliseconds was meant. */
const furthestMs = 10 * 365.25 * 86_400_000

/**
 * Checks and encodes one job; a promise only where its task has a schema. Throws `InvalidJobError`,
 * `PayloadTooLargeError`, `UnknownQueueError` or `UnsupportedByStoreError`; nothing was stored then.
 */
export function draftJob({ task, input, options }: EnqueueItem, rules: DraftRules): JobDraft | Promise<JobDraft> {
  checkOptions(task, options, rules)
  const { name: queue, renewLease, leaseMs } = rules.registry.queue(options.queue ?? task.queue)
  if (!renewLease && task.timeLimitMs >= leaseMs && rules.registry.find(task.name) === task)
    throw wrong(
      task,
      `its time limit (${formatDuration(task.timeLimitMs)}) is not less than the lease of queue '${queue}' (${formatDuration(leaseMs)}), which is not renewed: it would never be run. Use another queue, or a longer lease.`,
    )
  // What is stored is the input as given: transforms belong to the worker's side, where the schema is applied again.
  const draft = () => draftOf(task, input, options, queue, rules)
  return task.input === undefined ? draft() : validated(task.input, input, `the input of a ${nameOf(task)}`).then(draft)
}

function draftOf(task: AnyTask, input: unknown, options: EnqueueOptions, queue: string, rules: DraftRules): JobDraft {
  const { id, meta, priority = 0, delay, runAt } = options
  const payload = encoded(rules, task, 'input', input)
  const job: { -readonly [K in keyof NewJob]: NewJob[K] } = {
    id: id ?? rules.newId(),
    task: task.name,
    payload,
    priority,
    // A store may remember ids that are never used again longer; this one may be, at once where it is not to be remembered.
    rememberMs: id === undefined ? 0 : Math.max(1, rules.idempotencyMs),
  }
  let bytes = payloadBytes(payload)
  if (rules.codec.name !== 'json') job.codec = rules.codec.name
  if (meta !== undefined) {
    job.meta = encoded(rules, task, 'meta', meta)
    bytes += payloadBytes(job.meta)
  }
  if (delay !== undefined || runAt !== undefined) Object.assign(job, due(task, options, rules.traits))
  return { queue, job, bytes }
}

function nameOf(task: AnyTask): string {
  return `job of task '${task.name}'`
}

function wrong(task: AnyTask, message: string): InvalidJobError {
  return new InvalidJobError(`${nameOf(task)}: ${message}`)
}

function checkOptions(task: AnyTask, options: EnqueueOptions, { traits }: DraftRules): void {
  if (typeof options !== 'object' || options === null)
    throw wrong(task, `options must be an object; got ${shown(options)}.`)
  for (const name of Object.keys(options)) {
    if (!optionNames.has(name))
      throw wrong(task, `'${name}' is not an option of enqueue; known are ${[...optionNames].join(', ')}.`)
  }
  const { id, priority, meta, group } = options
  if (id !== undefined && !isJobId(id)) throw wrong(task, `id must be ${jobIdForm}; got ${shown(id)}.`)
  if (priority !== undefined && !isPriority(priority))
    throw wrong(task, `priority must be ${priorityForm}; got ${shown(priority)}.`)
  if (meta !== undefined && (typeof meta !== 'object' || meta === null || Array.isArray(meta)))
    throw wrong(task, 'meta must be a plain object.')
  if (priority !== undefined && priority !== 0 && !traits.priority) {
    throw new UnsupportedByStoreError(traits.name, 'job priorities', 'Use a queue of its own for urgent jobs.')
  }
  if (group !== undefined && !traits.groups) {
    throw new UnsupportedByStoreError(traits.name, 'groups', 'Leave `group` out, or use a store with groups.')
  }
}

function due(task: AnyTask, options: EnqueueOptions, traits: StoreTraits): { delayMs?: number; runAt?: number } {
  const { delay, runAt } = options
  if (delay !== undefined && runAt !== undefined) throw wrong(task, 'give delay or runAt, not both.')
  if (delay !== undefined) {
    const delayMs = parseDuration(delay)
    if (delayMs === undefined) throw wrong(task, `delay must be ${durationForm}; got ${shown(delay)}.`)
    const mostMs = Math.min(furthestMs, traits.maxDelayMs)
    if (delayMs > mostMs)
      throw wrong(task, `a delay of ${delayMs} ms is longer than ${mostMs} ms, the longest possible.`)
    return delayMs === 0 ? {} : { delayMs }
  }
  if (runAt !== undefined) return { runAt: instantOf(task, runAt) }
  return {}
}

/** ISO-8601 with date, time and zone: text without a zone would mean another moment on each machine. */
const isoInstant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/

function instantOf(task: AnyTask, runAt: unknown): number {
  const at =
    runAt instanceof Date
      ? runAt.getTime()
      : typeof runAt === 'string' && isoInstant.test(runAt)
        ? Date.parse(runAt)
        : Number.NaN
  // The year 2286: a later one is a number of microseconds read as milliseconds.
  if (Number.isNaN(at) || at < 0 || at > 9_999_999_999_999) {
    throw wrong(
      task,
      `runAt must be a valid Date or ISO-8601 text with a zone, such as '2026-12-24T18:00:00Z'; got ${shown(runAt)}. For a time from now use delay.`,
    )
  }
  return Math.trunc(at)
}

/** `part`: of the job, `'input'` or `'meta'`. */
function encoded({ codec, maxPayloadBytes, traits }: DraftRules, task: AnyTask, part: string, value: unknown): Payload {
  let payload: Payload
  try {
    payload = encodedBy(codec, value)
  } catch (error) {
    throw new InvalidJobError(`the ${part} of a ${nameOf(task)} cannot be encoded: ${messageOf(error)}`, {
      cause: error,
    })
  }
  const bytes = payloadBytes(payload)
  const limit = Math.min(maxPayloadBytes, traits.maxPayloadBytes)
  if (bytes > limit) throw new PayloadTooLargeError(`the ${part} of a ${nameOf(task)}`, bytes, limit)
  return payload
}
