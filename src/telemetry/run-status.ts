/** The status of a run's span: what the ends of its jobs make of it. */

import type { EndAnswer, RunEnd } from '../core/task/middleware.js'
import { messageOf } from '../core/values/describe.js'

/** Why a run, or a job of it, was not what its handler should have done. */
export interface Fault {
  /** Of few values: a code of Millrace, the name of a class, or the reason of an end. */
  readonly type: string
  readonly message: string
  readonly error?: unknown
}

/** For these reasons a job is put back as its handler, its task or its queue wants it. */
const asWanted: ReadonlySet<string | undefined> = new Set(['snoozed', 'throttled', 'should-run', 'late', 'deferred'])

/** Undefined where all is well. */
export function faultOf({ kind, reason, error }: RunEnd): Fault | undefined {
  if (kind === 'completed' || (kind === 'released' && asWanted.has(reason))) return undefined
  // Of a job that was not run here a text says why.
  if (typeof error === 'string') return { type: reason ?? kind, message: error, error }
  if (error !== undefined) return faultBy(error)
  // Reasons of a cancel and of a burial are sentences of anybody's.
  const type = kind === 'released' && reason !== undefined ? reason : kind
  return { type, message: reason ?? kind }
}

export function faultBy(error: unknown): Fault {
  return { type: typeOf(error), message: messageOf(error), error }
}

/** Of an end that the store did not take. */
export function faultOfAnswer(answer: EndAnswer): Fault {
  return { type: answer ?? 'unanswered', message: 'the store did not take the end of a job' }
}

function typeOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return '_OTHER'
    const { code } = error as { readonly code?: unknown }
    return typeof code === 'string' ? code : error.name
  } catch {
    // A proxy of the user's that throws when looked at.
    return '_OTHER'
  }
}
