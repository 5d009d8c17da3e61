/** The verdict of a child: the one that the process of an isolated job gave, as its worker reports it. */

import type { Verdict } from '../../runtime/run/verdict.js'
import type { ChildVerdict } from './child-messages.js'

/** As if it had been our own. */
export function verdictOfChild({ kind, delayMs = 0, last = false, reason = '', error }: ChildVerdict): Verdict {
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
