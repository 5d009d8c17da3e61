/**
 * The identity of this process: it differs from that of every other process, even a later one with the same pid. The ids
 * of its workers and listeners begin with it.
 */

import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { hostname } from 'node:os'
import { isMainThread, threadId } from 'node:worker_threads'
import { bootIdIn, pidNamespaceIn, startTicksIn } from '../../core/platform/proc-text.js'

export interface ProcessIdentity {
  readonly host: string
  /** The id of the running kernel; a reboot changes it. Empty if the system does not say. */
  readonly boot: string
  /** Inode of the pid namespace: pids of two containers are not comparable. Empty if the system does not say. */
  readonly pidns: string
  readonly pid: number
  /** Kernel ticks from boot to the start of the process. 0 if the system does not say. */
  readonly ticks: number
}

/** The identity of this process, or of another one of this machine; `ticks` is 0 if no process has that pid. */
export function processIdentity(pid = process.pid): ProcessIdentity {
  return {
    host: process.env['MILLRACE_HOST'] ?? hostname(),
    boot: ifReadable(() => bootIdIn(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))) ?? '',
    pidns: ifReadable(() => pidNamespaceIn(readlinkSync('/proc/self/ns/pid'))) ?? '',
    pid,
    ticks: ifReadable(() => startTicksIn(readFileSync(`/proc/${pid}/stat`, 'utf8'))) ?? 0,
  }
}

/** Undefined also if the system has no such file. */
function ifReadable<T>(read: () => T | undefined): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

let idsOfThisThread = 0

const randomLength = 6

/**
 * The id of the next worker of this process: the identity of the process, and a part that is unique even in a copy of
 * this machine. `isListener`: makes the id of a listener, which `isListenerId` recognises.
 */
export function nextWorkerId(identity: ProcessIdentity, isListener = false): string {
  idsOfThisThread += 1
  // Each thread counts for itself.
  const thread = isMainThread ? '' : `t${threadId}-`
  return `${identityText(identity)}/${isListener ? 'l' : ''}${thread}${idsOfThisThread}-${freshBytes().toString('hex')}`
}

/**
 * From the kernel, not from this process' generator: cloned machines share the state of the generator, the boot id, pids
 * and start times.
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

/**
 * The process that a worker's id names: an id is `identityText` and a suffix for the worker within its process.
 * Undefined if the worker is of another machine or container than `here`, whose numbers mean nothing to us.
 */
export function identityIn(worker: string, here: ProcessIdentity): Pick<ProcessIdentity, 'pid' | 'ticks'> | undefined {
  const place = placeText(here)
  if (!worker.startsWith(place)) return undefined
  const [, pid, ticks] = /^(\d+)\/(\d+)\/l?(?:t\d+-)?\d+(?:-[\da-f]+)?$/.exec(worker.slice(place.length)) ?? []
  return pid === undefined ? undefined : { pid: Number(pid), ticks: Number(ticks) }
}

/** The identity as one word. */
export function identityText(identity: ProcessIdentity): string {
  return `${placeText(identity)}${identity.pid}/${identity.ticks}`
}

function placeText({ host, boot, pidns }: ProcessIdentity): string {
  return `${host}/${boot.slice(0, 8)}/${pidns}/`
}
