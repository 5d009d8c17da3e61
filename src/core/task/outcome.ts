/**
 * Outcomes: values that a handler returns if it has no result but did not fail; and the time for which it holds a group
 * or a queue.
 */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import { systemClock } from '../platform/clock.js'
import { callForms, callOptions } from '../values/call-check.js'
import { type Duration, durationForm, durationMs, statedMs } from '../values/duration.js'

const mark = Symbol.for('millrace.outcome')

export type Outcome =
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'cancel'; readonly reason: string | undefined }
  | { readonly kind: 'bury'; readonly reason: string | undefined }
  | { readonly kind: 'hold'; readonly holdMs: number }

/** An outcome has a type of its own, so a handler that may return one keeps its result type. */
export type OutcomeValue = { readonly [mark]: Outcome }

/**
 * Runs this job again after `delay`; not a failure, not counted.
 *
 * @example
 * if (answer.status === 202) return snooze('10m')
 */
export function snooze(delay: Duration): OutcomeValue {
  return { [mark]: { kind: 'snooze', delayMs: durationMs(delay, 'snooze(delay)') } }
}

/**
 * Ends this job as cancelled: it is not run again and has no result. Its record stays for an hour, or with an id of your own for
 * `idempotency`.
 *
 * @example
 * if (answer.status === 410) return cancel('the customer is gone')
 */
export function cancel(reason?: string): OutcomeValue {
  refuseReason(reason, 'cancel(reason)')
  return { [mark]: { kind: 'cancel', reason } }
}

/**
 * Buries this job in the morgue at once; not counted as a failure.
 *
 * @example
 * if (answer.status === 400) return bury('the address is wrong')
 */
export function bury(reason?: string): OutcomeValue {
  refuseReason(reason, 'bury(reason)')
  return { [mark]: { kind: 'bury', reason } }
}

/**
 * Holds the job's group, or its queue if it has no group: none of their jobs is started for that time, and this job
 * runs again then. Return it when a service asks for fewer calls (HTTP 429): `hold(answer)` heeds its `Retry-After`
 * header, which may be seconds or a date. Also takes a duration, the text of that header, or a Date. Nothing that a
 * server sends makes it throw: what cannot be read, or is missing, means 30 s, and the hold lasts at most `atMost`
 * (default 1 h). A longer hold stays; `queue.throttle.release()` ends it before its time. The job keeps its place; not
 * a failure, not counted. For a batch the groups of all jobs are held. On a store without throttles only the job itself
 * waits.
 *
 * @example
 * if (answer.status === 429) return hold(answer)
 */
export function hold(when: HoldTime, options?: HoldOptions): OutcomeValue {
  return { [mark]: { kind: 'hold', holdMs: holdTimeMs(when, options, systemClock.now(), 'hold') } }
}

function refuseReason(reason: unknown, what: string): void {
  if (reason === undefined || typeof reason === 'string') return
  throw new InvalidArgumentError(`${what} must get text or nothing; got ${describe(reason)}.`)
}

/** The outcome in `value`, or undefined if it is an ordinary result. */
export function outcomeOf(value: unknown): Outcome | undefined {
  return typeof value === 'object' && value !== null && mark in value ? (value as OutcomeValue)[mark] : undefined
}

/** The headers of an answer: a `Headers`, or the plain object of `node:http`. */
type AnswerHeaders =
  | { get(name: string): string | null | undefined }
  | { readonly 'retry-after'?: string | undefined; readonly date?: string | undefined }

/**
 * For how long to hold: a duration; the text of a `Retry-After` header (RFC 9110), which is seconds or a date; a date; or
 * an answer or its headers, whose `retry-after` counts. Nothing a server sends is refused. What cannot be read, or is not
 * there, means 30 s. Seconds and dates of a server mean at least 1 s.
 */
export type HoldTime =
  | Duration
  | (string & Record<never, never>)
  | Date
  | AnswerHeaders
  | { readonly headers: AnswerHeaders }
  | null
  | undefined

export interface HoldOptions {
  /** The longest hold: a longer one is cut to it. Default 1 h. */
  readonly atMost?: Duration | undefined
}

/** The hold if nothing says how long. */
const usualMs = 30_000
/** The shortest hold by a server's word: `0`, or a date that has passed, must not make a job run again and again. */
const leastMs = 1_000
const usualMostMs = 3_600_000

const seconds = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+|Infinity)(?:e[+-]?\d+)?$/i
/** `Sun, 06 Nov 1994 08:49:37 GMT`, the older `Sunday, 06-Nov-94 08:49:37 GMT`, and a date of ISO 8601. */
const dated =
  /^(?:[a-z]{3,9}, \d{2}[ -][a-z]{3}[ -]\d{2,4} \d{2}:\d{2}:\d{2} gmt|\d{4}-\d{2}-\d{2}t[\d:.]+(?:z|[+-]\d{2}:?\d{2}))$/i
/** `Sun Nov  6 08:49:37 1994`, which is in GMT too. */
const asctime = /^[a-z]{3} [a-z]{3} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/i

const entries = { atMost: callForms.duration }
const checkOptions = { hold: callOptions('hold', entries), 'ctx.hold': callOptions('ctx.hold', entries) }

/**
 * The ms to hold. `call`: the call whose arguments these are. `now`: the wall clock. Throws `InvalidArgumentError` for
 * what no server can have sent, and for wrong options.
 */
export function holdTimeMs(
  when: HoldTime,
  options: HoldOptions = {},
  now: number,
  call: keyof typeof checkOptions,
): number {
  checkOptions[call](options)
  const askedMs = askedFor(when, now)
  if (askedMs === undefined)
    throw new InvalidArgumentError(
      `${call}(when) must be ${durationForm}, the text of a Retry-After header, a date, or an answer with headers; got ${describe(when)}.`,
    )
  const { atMost } = options
  return Math.min(askedMs, atMost === undefined ? usualMostMs : durationMs(atMost, `${call}({ atMost })`))
}

/** Undefined: no server says such a thing. */
function askedFor(when: unknown, now: number): number | undefined {
  if (when === undefined || when === null) return usualMs
  if (typeof when === 'number') return Number.isNaN(when) ? usualMs : when < 0 ? leastMs : Math.round(when)
  if (typeof when === 'string') return askedInText(when, now)
  if (when instanceof Date) return untilMs(when.getTime(), now)
  const headers = headersIn(when)
  if (headers === undefined) return undefined
  const sentAt = Date.parse(textOf(headers, 'date') ?? '')
  // By the server's own clock, which may be wrong.
  return askedInText(textOf(headers, 'retry-after') ?? '', Number.isNaN(sentAt) ? now : sentAt)
}

function askedInText(text: string, now: number): number {
  const given = text.trim()
  const stated = statedMs(given)
  if (stated !== undefined) return stated < 0 ? leastMs : Math.round(stated)
  if (dated.test(given)) return untilMs(Date.parse(given), now)
  if (asctime.test(given)) return untilMs(Date.parse(`${given} GMT`), now)
  // Two headers of one name arrive as one, with a comma.
  const parts = given.split(',').map((part) => part.trim())
  if (!parts.every((part) => seconds.test(part))) return usualMs
  return Math.max(leastMs, ...parts.map((part) => Math.round(Number(part) * 1_000)))
}

function untilMs(at: number, now: number): number {
  return Number.isNaN(at) ? usualMs : Math.max(leastMs, at - now)
}

function headersIn(value: unknown): object | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  if (!('headers' in value)) return value
  return typeof value.headers === 'object' && value.headers !== null ? value.headers : undefined
}

function textOf(headers: object, name: string): string | undefined {
  const value = 'get' in headers && typeof headers.get === 'function' ? headers.get(name) : Reflect.get(headers, name)
  return value === undefined || value === null ? undefined : String(value)
}
