/** A process group: which of its processes live, as the system tells, and the end of those that work in a folder. */

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The processes of a group that live, by their numbers. */
export function livingIn(group: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return Number(pgrp) === group && state !== 'Z' && state !== 'X'
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Kills what works in this folder, with all of its group: processes of isolated jobs outlive their worker on purpose. Linux only. */
export function killAllIn(folder: string): void {
  for (const pid of pidsIn(folder)) {
    kill(-pid)
    kill(pid)
  }
}

/** Kills the processes of a group, where there are any. */
export function killGroup(group: number): void {
  kill(-group)
}

function kill(target: number): void {
  try {
    process.kill(target, 'SIGKILL')
  } catch {
    // It has ended meanwhile, or leads no group.
  }
}

function pidsIn(folder: string): number[] {
  try {
    const numbers = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return numbers.filter((pid) => folderOf(pid) === folder).map(Number)
  } catch {
    return []
  }
}

function folderOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return undefined
  }
}
