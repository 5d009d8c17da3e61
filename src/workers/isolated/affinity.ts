/**
 * Affinity: what a worker has that others on its machine have not, such as a device. A worker adopts the process of a
 * job only from a worker of the same affinity, as long as such a worker may come back.
 */

import { readFileSync } from 'node:fs'
import { variableIn } from '../../core/platform/proc-text.js'
import { deviceVariable } from './child-environment.js'

/** The variables of the process of a job: the affinity of the worker that started it, and the number of its slot. */
export const affinityVariable = 'MILLRACE_AFFINITY'
export const slotVariable = 'MILLRACE_SLOT'

/** The affinity of a worker that declares none: the devices that its environment gives it; empty if it gives none. */
export function affinityOf(env: Readonly<Record<string, string | undefined>>): string {
  const devices = Object.entries(env).filter(([name, value]) => deviceVariable.test(name) && value !== undefined)
  return devices
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(' ')
}

/** What the process of a job was started with, by its environment. Unknown values are those of a lone worker. */
export function startedWith(pid: number): { readonly affinity: string; readonly slot: number | undefined } {
  const slot = variableOf(pid, slotVariable)
  return {
    affinity: variableOf(pid, affinityVariable) ?? '',
    slot: slot !== undefined && /^\d{1,6}$/.test(slot) ? Number(slot) : undefined,
  }
}

function variableOf(pid: number, name: string): string | undefined {
  try {
    return variableIn(readFileSync(`/proc/${pid}/environ`, 'utf8'), name)
  } catch {
    // It has just ended, or belongs to somebody else.
    return undefined
  }
}
