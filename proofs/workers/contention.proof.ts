/** Proof: eight processes on one SQLite file complete each of 20,000 jobs exactly once, also while thirty of them are killed. */

import { seededRandom } from '../../test/seeded-random.js'
import type { Report } from '../report.js'
import { type ContentionOutcome, contend } from './contention.js'

export const seed = 20_260_000

export async function prove(report: Report): Promise<unknown> {
  const random = seededRandom(seed)
  const calm = await contend({ jobs: 20_000, processes: 8, kills: 0, random, withinMs: 300_000 })
  tell(report, '8 processes, 20,000 jobs', calm)
  // Jobs that take a while, so that killed workers have some in hand.
  const killed = await contend({ jobs: 20_000, processes: 8, jobMs: 5, kills: 30, random, withinMs: 600_000 })
  tell(report, '8 processes, 20,000 jobs, 30 × kill -9', killed)
  report.claim('all thirty were killed', killed.kills === 30)
  report.claim('what they held was run again', killed.redelivered > 0)
  return { calm: { ...calm, shares: undefined }, killed: { ...killed, shares: undefined } }
}

function tell(report: Report, what: string, outcome: ContentionOutcome): void {
  const { seconds, completed, lost, completedTwice, overlaps, redelivered, failedCalls, longestWaitMs, shares } =
    outcome
  report.say(`${what}: ${completed} completed in ${seconds.toFixed(1)} s, ${redelivered} redelivered`)
  report.say(
    `  longest store call ${longestWaitMs.toFixed(0)} ms; jobs claimed per process ${shares[0]} … ${shares.at(-1)}`,
  )
  report.claim(
    'each job completed exactly once, by the audit',
    completed === 20_000 && lost === 0 && completedTwice === 0,
  )
  report.claim('no two claims of one job were current at once', overlaps === 0)
  report.claim(
    `no store call failed before a user's eyes ${failedCalls.slice(0, 3).join(' · ')}`.trim(),
    failedCalls.length === 0,
  )
}
