/** The status of a run's span, derived from the ends of its jobs. */

import type { EndAnswer, RunEnd } from '../core/task/middleware.js'
import { messageOf } from '../core/values/describe.js'

/** Why a run, or one of its jobs, did not succeed. */
export interface Fault {
  /** One of few values: a code of Millrace, the name of a class, or the reason of an end. */
  readonly type: string
  readonly message: string
  readonly error?: unknown
}

/** For these reasons a job is put back because its handler, task or queue wants it. */
const asWanted: ReadonlySet<string | undefined> = new Set(['snoozed', 'throttled', 'should-run', 'late', 'deferred'])

/** Undefined if nothing is wrong. */
export function faultOf({ kind, reason, error }: RunEnd): Fault | undefined {
  if (kind === 'completed' || (kind === 'released' && asWanted.has(reason))) return undefined
  // For a job that did not run here, a text says why.
  if (typeof error === 'string') return { type: reason ?? kind, message: error, error }
  if (error !== undefined) return faultBy(error)
  // Reasons of a cancel and of a burial are free text.
  const type = kind === 'released' && reason !== undefined ? reason : kind
  return { type, message: reason ?? kind }
}

export function faultBy(error: unknown): Fault {
  return { type: typeOf(error), message: messageOf(error), error }
}

/** The fault of an end that the store did not take. */
export function faultOfAnswer(answer: EndAnswer): Fault {
  return { type: answer ?? 'unanswered', message: 'the store did not take the end of a job' }
}

function typeOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return '_OTHER'
    const { code } = error as { readonly code?: unknown }
    return typeof code === 'string' ? code : error.name
  } catch {
    // A user's proxy that throws when looked at.
    return '_OTHER'
  }
}
