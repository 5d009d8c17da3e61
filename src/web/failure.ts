/**
 * A failure: an error as the API reports it: its status, its code, and words that say what to do. Never a stack. A
 * refusal is one that the window itself throws.
 */

import { randomUUID } from 'node:crypto'
import { type ConfigIssue, hasCode, isMillraceError } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import { defined } from '../core/values/defined.js'

/** The statuses of refusals. Answers also have the codes of the mill's own errors. */
const statusOf = {
  'argument-invalid': 400,
  unauthorized: 401,
  forbidden: 403,
  csrf: 403,
  'not-found': 404,
  'job-unknown': 404,
  'method-not-allowed': 405,
  'payload-too-large': 413,
  'content-type': 415,
  host: 421,
  'too-many-attempts': 429,
  'too-many-streams': 429,
} as const

type WebRefusalCode = keyof typeof statusOf

/** Thrown for a request that is answered with an error before a mill is asked. */
export class WebRefusal extends Error {
  readonly code: WebRefusalCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly fields: readonly ConfigIssue[] | undefined

  /** `fields`: each mistake in the request, with its place. */
  constructor(
    code: WebRefusalCode,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    fields?: readonly ConfigIssue[],
  ) {
    super(message)
    this.code = code
    this.status = statusOf[code]
    this.headers = headers
    this.fields = fields
  }
}

interface ApiFailure {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly fields?: readonly ConfigIssue[]
  /** The number of things that were changed all the same. */
  readonly changed?: number
  readonly headers: Readonly<Record<string, string>>
}

/** The statuses by the codes of the mill's errors. */
const statuses: Readonly<Record<string, number>> = {
  'argument-invalid': 400,
  'codec-failed': 400,
  'config-invalid': 400,
  'enqueue-many-refused': 400,
  'job-invalid': 400,
  'task-unknown': 400,
  'queue-missing': 404,
  'queue-unknown': 404,
  'config-conflict': 409,
  'job-elsewhere': 409,
  'job-running': 409,
  'queue-draining': 409,
  'throttle-conflict': 409,
  'payload-too-large': 413,
  'unsupported-by-store': 422,
  'queue-full': 429,
  closed: 503,
  'store-corrupt': 503,
  'store-full': 503,
  'store-newer': 503,
  'store-refused': 503,
  'store-unavailable': 503,
}

/** An unexpected error is reported with an id, under which the logger has it. */
export function failureOf(error: unknown, logger: Logger): ApiFailure {
  if (error instanceof WebRefusal) return { ...pick(error), headers: error.headers, ...fieldsOf(error.fields) }
  if (hasCode(error, 'config-invalid')) return { ...pick(error), status: 400, headers: {}, ...fieldsOf(error.issues) }
  if (hasCode(error, 'enqueue-many-refused')) return manyFailure(error)
  const status = isMillraceError(error) ? statuses[error.code] : undefined
  if (isMillraceError(error) && status !== undefined) {
    const headers = status === 429 || status === 503 ? { 'retry-after': '5' } : {}
    return { ...pick(error), status, headers, ...defined({ changed: changedDespite(error) }) }
  }
  const id = randomUUID()
  logger.error(`the dashboard failed (${id})`, {
    id,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  })
  return {
    status: 500,
    code: 'internal',
    message: `an unexpected error occurred. The log has it under ${id}.`,
    headers: {},
  }
}

/** How many things an action has changed before it met this error; undefined if it is not one that comes so late. */
export function changedDespite(error: unknown): number | undefined {
  return hasCode(error, 'job-running') ? error.deleted : undefined
}

function pick<E extends { readonly code: string; readonly message: string; readonly status?: number }>({
  code,
  message,
  status = 400,
}: E) {
  return { code, message, status }
}

function fieldsOf(fields: readonly ConfigIssue[] | undefined): Pick<ApiFailure, 'fields'> | undefined {
  return fields === undefined ? undefined : { fields }
}

/** Each refused job is a field; the first one decides the code. */
function manyFailure({
  message,
  results,
  cause,
}: {
  readonly message: string
  readonly results: readonly unknown[]
  readonly cause?: unknown
}): ApiFailure {
  const fields = results.flatMap((result, i) => {
    const { error } = result as { readonly error?: Error }
    return error === undefined ? [] : [{ path: `jobs.${i}`, message: error.message }]
  })
  const status = isMillraceError(cause) ? (statuses[cause.code] ?? 400) : 400
  return { status, code: 'enqueue-many-refused', message, fields, headers: {} }
}
