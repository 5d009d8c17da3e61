/** The verdict of a child: the verdict of an isolated job's process, as its worker reports it. */

import { type Verdict, withHold } from '../../runtime/run/verdict.js'
import type { ChildVerdict } from './child-messages.js'

/** The same as a verdict of this process. */
export function verdictOfChild(told: ChildVerdict): Verdict {
  return withHold(endingOf(told), told.holdMs)
}

function endingOf({ kind, delayMs = 0, last = false, reason = '', error }: ChildVerdict): Verdict {
  switch (kind) {
    case 'complete':
      return { kind, result: undefined }
    case 'retry':
      return last ? { kind, delayMs: 0, last, error, reason } : { kind, delayMs, last, error }
    case 'release':
      return { kind, delayMs, reason }
    case 'bury':
      return { kind, reason, error }
    case 'cancel':
      return { kind, reason }
  }
}
