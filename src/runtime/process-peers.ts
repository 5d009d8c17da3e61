/** Peers: whether a process of this very machine still lives. Nothing is ever said of processes of other machines or containers. */

import { readFileSync } from 'node:fs'
import { hasEnded, startTicksIn } from '../core/platform/proc-text.js'
import type { ProcessIdentity } from './process-identity.js'

type Machine = Pick<ProcessIdentity, 'host' | 'boot' | 'pidns'>

/** Whether both are processes of one running kernel that see the same process numbers. */
export function isNeighbour(a: Machine, b: Machine): boolean {
  return a.boot !== '' && a.pidns !== '' && a.boot === b.boot && a.pidns === b.pidns && a.host === b.host
}

/** Whether a neighbour is dead for certain: no process has its number, or one that was started at another time. */
export function isDead({ pid, ticks }: Pick<ProcessIdentity, 'pid' | 'ticks'>): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return true
    // EPERM: somebody of this number lives, and belongs to another user.
    if (code !== 'EPERM') return false
  }
  try {
    return isOver(readFileSync(`/proc/${pid}/stat`, 'utf8'), ticks)
  } catch {
    // It has ended this moment, or is hidden from us: the next look tells.
    return false
  }
}

/**
 * Whether this stat shows that the process that began at `ticks` (0: not known) is over. One that is empty or torn shows
 * nothing: who is taken for dead has its jobs handed to others.
 */
export function isOver(stat: string, ticks: number): boolean {
  const startedAt = startTicksIn(stat)
  return hasEnded(stat) === true || (startedAt !== undefined && ticks !== 0 && startedAt !== ticks)
}

/** The unit of start ticks towards programs, `USER_HZ` of 100, whatever the kernel counts in (proc_pid_stat(5), time(7)). */
const tickMs = 10

/** Ms since a neighbour was started, if it still lives, to within a few ticks. `me`: this process. */
export function ageMs({ ticks }: Pick<ProcessIdentity, 'ticks'>, me: Pick<ProcessIdentity, 'ticks'>): number {
  return process.uptime() * 1_000 + (me.ticks - ticks) * tickMs
}
