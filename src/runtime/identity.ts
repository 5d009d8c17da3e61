/** The identity of this process: what tells it from every other one, also from a later one with the same pid. */

import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

export interface ProcessIdentity {
  readonly host: string
  /** Of the running kernel; another one after a reboot. Empty where the system does not tell. */
  readonly boot: string
  /** Inode of the pid namespace: pids of two containers are not comparable. Empty where the system does not tell. */
  readonly pidns: string
  readonly pid: number
  /** Kernel ticks from boot to the start of the process. 0 where the system does not tell. */
  readonly ticks: number
}

export function processIdentity(): ProcessIdentity {
  return {
    host: process.env['MILLRACE_HOST'] ?? hostname(),
    boot: orElse('', () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidns: orElse('', () => /\[(\d+)\]/.exec(readlinkSync('/proc/self/ns/pid'))![1]!),
    pid: process.pid,
    ticks: orElse(0, () => startTicks(readFileSync('/proc/self/stat', 'utf8'))),
  }
}

/** Field 22 of /proc/<pid>/stat (proc_pid_stat(5)); the second, the command, may itself hold spaces and brackets. */
export function startTicks(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
}

/** The identity as one word. */
export function identityText({ host, boot, pidns, pid, ticks }: ProcessIdentity): string {
  return [host, boot.slice(0, 8), pidns, pid, ticks].join('/')
}

/** The process that a worker's id names: an id is `identityText` and a number behind it. Undefined where it is another's. */
export function identityIn(worker: string): Pick<ProcessIdentity, 'pid' | 'ticks'> | undefined {
  const [, pid, ticks] = /\/(\d+)\/(\d+)\/(?:t\d+-)?\d+$/.exec(worker) ?? []
  return pid === undefined ? undefined : { pid: Number(pid), ticks: Number(ticks) }
}

function orElse<T>(otherwise: T, read: () => T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
