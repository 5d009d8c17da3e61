/** A process group: which of its processes live, as the system tells. */

import { readdirSync, readFileSync } from 'node:fs'

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
