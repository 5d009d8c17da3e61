/**
 * Peers: whether a process of this machine still lives, and with it the workers in it. Nothing is said about processes
 * of other machines or containers, except whether their workers have reported lately.
 */

import { readFileSync } from 'node:fs'
import { hasEnded, startTicksIn } from '../../core/platform/proc-text.js'
import type { SeenWorker } from '../../stores/contract/worker-registry.js'
import { type ProcessIdentity, processIdentity } from './process-identity.js'

type Machine = Pick<ProcessIdentity, 'host' | 'boot' | 'pidns'>

/** Whether both are processes of one running kernel with the same pid namespace. */
export function isNeighbour(a: Machine, b: Machine): boolean {
  return a.boot !== '' && a.pidns !== '' && a.boot === b.boot && a.pidns === b.pidns && a.host === b.host
}

/** Whether a neighbour is known to be dead: no process has its pid, or one that was started at another time. */
export function isDead({ pid, ticks }: Pick<ProcessIdentity, 'pid' | 'ticks'>): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return true
    // EPERM: a process with this pid lives, and belongs to another user.
    if (code !== 'EPERM') return false
  }
  try {
    return isOver(readFileSync(`/proc/${pid}/stat`, 'utf8'), ticks)
  } catch {
    // It has ended this moment, or is hidden from us: the next look decides.
    return false
  }
}

/**
 * Whether this stat shows that the process that began at `ticks` (0: unknown) is over. An empty or torn stat shows
 * nothing: the jobs of a process taken for dead go to others.
 */
export function isOver(stat: string, ticks: number): boolean {
  const startedAt = startTicksIn(stat)
  return hasEnded(stat) === true || (startedAt !== undefined && ticks !== 0 && startedAt !== ticks)
}

/**
 * The unit of start ticks for programs: `USER_HZ` of 100, whatever the kernel counts in (proc_pid_stat(5), time(7)).
 */
const tickMs = 10

/** Ms since a neighbour was started, if it still lives, to within a few ticks. `me`: this process. */
export function ageMs({ ticks }: Pick<ProcessIdentity, 'ticks'>, me: Pick<ProcessIdentity, 'ticks'>): number {
  return process.uptime() * 1_000 + (me.ticks - ticks) * tickMs
}

/**
 * `unknown`: a process of another machine or container, which has reported lately. `silent`: one that has not, so that
 * it is probably gone; the registry forgets it some time later.
 */
export type Liveness = 'alive' | 'dead' | 'silent' | 'unknown'

/** An idle worker on a server reports every 20 s. */
const silentAfterMs = 30_000

/** Whether the process of a worker lives, as far as this process can see. */
export function livenessOf(worker: SeenWorker, here: ProcessIdentity = processIdentity()): Liveness {
  if (!isNeighbour(worker, here)) return worker.silentMs > silentAfterMs ? 'silent' : 'unknown'
  return isDead(worker) ? 'dead' : 'alive'
}

/** The workers that may take jobs, and those of other machines that have fallen silent; the dead are in neither. */
export interface Attendance {
  readonly serving: readonly SeenWorker[]
  readonly silent: readonly SeenWorker[]
}

export function attendanceOf(workers: readonly SeenWorker[]): Attendance {
  const here = processIdentity()
  const seen = workers.map((worker) => [livenessOf(worker, here), worker] as const)
  const those = (are: (liveness: Liveness) => boolean) =>
    seen.flatMap(([state, worker]) => (are(state) ? [worker] : []))
  return {
    serving: those((state) => state === 'alive' || state === 'unknown'),
    silent: those((state) => state === 'silent'),
  }
}
