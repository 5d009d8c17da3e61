/**
 * The ids of this process's workers and listeners: the identity of the process, and a part that is unique, even in a
 * copy of this machine.
 */

import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { isMainThread, threadId } from 'node:worker_threads'
import { identityText, type ProcessIdentity } from '../runtime/process/process-identity.js'

let idsOfThisThread = 0

const randomLength = 6

/** The next id. `isListener`: makes the id of a listener, which `isListenerId` recognises. */
export function nextWorkerId(identity: ProcessIdentity, isListener = false): string {
  idsOfThisThread += 1
  // Each thread counts for itself.
  const thread = isMainThread ? '' : `t${threadId}-`
  return `${identityText(identity)}/${isListener ? 'l' : ''}${thread}${idsOfThisThread}-${freshBytes().toString('hex')}`
}

/**
 * From the kernel, not from this process' generator: two clones of a machine share the state of the generator, as well
 * as boot, pids and start times.
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
    // The file does not exist here.
  }
  return randomBytes(randomLength)
}
