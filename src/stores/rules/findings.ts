/** The findings of a store's checks: every store says the same in the same words. Pure. */

import type { FsckFinding } from '../contract/store-health.js'

export const ok = (what: string, text: string): FsckFinding => ({ level: 'ok', what, text })
export const warning = (what: string, text: string): FsckFinding => ({ level: 'warning', what, text })
export const error = (what: string, text: string): FsckFinding => ({ level: 'error', what, text })

/** Of a queue, or a shard of one, in which nothing is wrong. */
export function inPlace(what: string, jobs: number): FsckFinding {
  return ok(what, `${jobs === 1 ? '1 job' : `${jobs} jobs`}, everything in its place`)
}

/** The findings of a check of queues; if there are none, no queue is stored. */
export function foundIn(findings: FsckFinding[]): FsckFinding[] {
  return findings.length > 0 ? findings : [ok('queues', 'none is stored')]
}

const shownIds = 3

/** The first of these ids or groups, behind what is wrong with them. */
export function listed(ids: readonly string[]): string {
  const shown = ids.slice(0, shownIds).map((id) => (id === '' ? "''" : id))
  const more = ids.length > shownIds ? ` and ${ids.length - shownIds} more` : ''
  return `: ${shown.join(', ')}${more}`
}
