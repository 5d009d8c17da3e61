/** A process group: which of its processes live, as the system tells, and the end of those that work in a folder. */

import { channel } from 'node:diagnostics_channel'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Processes that this one has started and does not wait for by `spawnSync`. */
let started = 0
channel('child_process').subscribe(() => {
  started += 1
})

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

/**
 * Makes what kills all that works in this folder by then, with all of its group: processes of isolated jobs outlive their
 * worker on purpose. It looks at every process of the machine, unless this one has started none since. Linux only.
 */
export function killingAllIn(folder: string): () => void {
  const before = started
  return () => {
    if (started === before) return
    for (const pid of pidsIn(folder)) {
      kill(-pid)
      kill(pid)
    }
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
