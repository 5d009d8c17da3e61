/** The ids of this process's workers and listeners: its identity, and behind it what nobody else has, here or in a copy of this machine. */

import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { isMainThread, threadId } from 'node:worker_threads'
import { identityText, type ProcessIdentity } from '../runtime/process-identity.js'

let idsOfThisThread = 0

const randomLength = 6

/** The next one. `isListener`: of a listener, which `isListenerId` then sees. */
export function nextWorkerId(identity: ProcessIdentity, isListener = false): string {
  idsOfThisThread += 1
  // Threads count for themselves.
  const thread = isMainThread ? '' : `t${threadId}-`
  return `${identityText(identity)}/${isListener ? 'l' : ''}${thread}${idsOfThisThread}-${freshBytes().toString('hex')}`
}

/**
 * Of the kernel, not of the generator in this process: two clones of a machine go on with one and the same state of that,
 * and have the same boot, pids and start times.
 */
function freshBytes(): Buffer {
  const bytes = Buffer.alloc(randomLength)
  try {
    const file = openSync('/dev/urandom', 'r')
    try {
      if (readSync(file, bytes) === randomLength) return bytes
    } finally {
      closeSync(file)
    }
  } catch {
    // There is none here.
  }
  return randomBytes(randomLength)
}
