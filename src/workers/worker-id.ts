/** The ids of this process's workers and listeners: its identity, and a number behind it that nobody else here has. */

import { isMainThread, threadId } from 'node:worker_threads'
import { identityText, type ProcessIdentity } from '../runtime/identity.js'

let idsOfThisThread = 0

/** The next one. */
export function nextWorkerId(identity: ProcessIdentity): string {
  idsOfThisThread += 1
  // Threads count for themselves.
  const thread = isMainThread ? '' : `t${threadId}-`
  return `${identityText(identity)}/${thread}${idsOfThisThread}`
}
