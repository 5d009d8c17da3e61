/** The rules of an audit: statements that are true of every history of every store. */

import type { AuditEntry } from './audit-entry.js'

/** Every breach of a rule, in the order of the entries; empty if there is none. */
export function auditBreaches(entries: readonly AuditEntry[]): string[] {
  const breaches: string[] = []
  const running = new Map<string, number>()
  const fences = new Map<string, number>()
  for (const [i, { kind, queue, shard, id, fence, from }] of entries.entries()) {
    const job = JSON.stringify([queue, id])
    const line = JSON.stringify([queue, shard])
    const say = (what: string) => breaches.push(`entry ${i}: ${kind} of ${job} with fence ${fence}: ${what}`)
    const held = running.get(job)
    if (kind === 'claim') {
      if (held !== undefined) say(`its claim with fence ${held} has not ended`)
      if (fence < (fences.get(line) ?? 0)) say(`fence ${fences.get(line)} was given before`)
      if (from !== 'ready') say(`it was ${from}, not ready`)
      running.set(job, fence)
      fences.set(line, fence)
    } else if (from === 'running') {
      if (held !== fence) say(`its current claim has fence ${held}`)
      running.delete(job)
    } else if (held !== undefined) {
      say(`it is running with fence ${held}`)
    }
  }
  return breaches
}
