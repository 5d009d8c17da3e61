/**
 * The group of a job's process: that process leads it, and everything that the job starts belongs to it. What the
 * handler has started ends before the job is settled, as another run may begin then, and nothing outlives the leader. The process that sees the leader end, ends the group. If nobody saw it, because the worker died as
 * well, the next worker of the machine finds what remains by a variable that the members have from their leader.
 */

import { readdirSync, readFileSync } from 'node:fs'
import type { Events } from '../../core/events.js'
import { groupIn, hasEnded, startTicksIn, variableIn } from '../../core/platform/proc-text.js'
import { type ProcessIdentity, processIdentity } from '../../runtime/process/process-identity.js'

/** Its value names the leader: `<pid>/<ticks>`. */
const variable = 'MILLRACE_JOB_GROUP'

/**
 * For how long a look is good. The lease of a job whose process dies has longer to go, so the job does not begin again
 * within this time.
 */
const freshMs = 500
let lookedAt = Number.NEGATIVE_INFINITY

type Leader = Pick<ProcessIdentity, 'pid' | 'ticks'>

/** Makes this process known as the leader to everything that it starts from now on. */
export function leadGroup(): void {
  const { pid, ticks } = processIdentity()
  process.env[variable] = textOf({ pid, ticks })
}

/** Sends a signal to the leader and all that have stayed in its group. Harmless if the group is empty. */
export function signalGroup(leader: number, how: NodeJS.Signals): void {
  signal(-leader, how)
}

/** The members of the group that this process leads, without itself. */
export function members(): number[] {
  const own = [...processes()].filter(([pid, stat]) => pid !== process.pid && groupIn(stat)?.group === process.pid)
  return own.filter(([, stat]) => hasEnded(stat) === false).map(([pid]) => pid)
}

/** Kills those members, but for `spared`. What they start meanwhile is killed as well. */
export function endMembers(spared: ReadonlySet<number> = new Set()): void {
  const killed = new Set<number>()
  for (let found = true; found; ) {
    const left = members().filter((pid) => !spared.has(pid) && !killed.has(pid))
    for (const pid of left) {
      killed.add(pid)
      signal(pid, 'SIGKILL')
    }
    found = left.length > 0
  }
}

/** Kills the group of this leader, unless its number has been given to another process, since the group is then empty. */
export function endGroup({ pid, ticks }: Leader): void {
  const startedAt = startTicksIn(textAt(`/proc/${pid}/stat`))
  if (startedAt === undefined || startedAt === ticks) signalGroup(pid, 'SIGKILL')
}

/**
 * Kills what remains of groups on this machine whose leader is dead. A number is not given to a new group while members
 * of the old one live, and the variable says that the group is a job's, so no other process can be meant.
 */
export function endRemains(worker: string, events: Events): void {
  lookedAt = performance.now()
  const groups = new Map<number, number>()
  for (const [pid, stat] of processes()) {
    const { group, session } = groupIn(stat) ?? {}
    if (group === undefined || group !== session || group === pid || hasEnded(stat) !== false) continue
    if (isLed(group) || !isOfJob(pid, group)) continue
    groups.set(group, (groups.get(group) ?? 0) + 1)
  }
  for (const [child, processes] of groups) {
    signalGroup(child, 'SIGKILL')
    events.emit('remains.ended', { worker, child, processes })
  }
}

/** The same before a job begins: what an earlier run of it has left must not work beside this one. */
export function endRemainsAnew(worker: string, events: Events): void {
  if (performance.now() >= lookedAt + freshMs) endRemains(worker, events)
}

function signal(target: number, how: NodeJS.Signals): void {
  try {
    process.kill(target, how)
  } catch {
    // It has ended, or the group is empty.
  }
}

function* processes(): Generator<[pid: number, stat: string]> {
  for (const name of namesIn('/proc')) if (/^\d+$/.test(name)) yield [Number(name), textAt(`/proc/${name}/stat`)]
}

/** A leader that has ended and was not reaped yet leads nobody. */
function isLed(group: number): boolean {
  const stat = textAt(`/proc/${group}/stat`)
  return stat !== '' && hasEnded(stat) !== true
}

function isOfJob(pid: number, group: number): boolean {
  return variableIn(textAt(`/proc/${pid}/environ`), variable)?.startsWith(`${group}/`) ?? false
}

function textOf({ pid, ticks }: Leader): string {
  return `${pid}/${ticks}`
}

/** Empty if there is no such file, or it belongs to somebody else. */
function textAt(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
