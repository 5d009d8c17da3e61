/** A refusal: a request that is answered with an error: one of our codes, a status, and words that say what to do. */

import type { ConfigIssue } from '../core/errors.js'

/** Refusals before a mill is asked. Answers also have the codes of the mill's own errors. */
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
