/** The report of a drill of crashes: what was done, and the claims that must hold whatever was. */

import type { Report, Summary } from '../report.js'
import type { CrashOutcome } from './crashes-drill.js'

export function reportCrashes(report: Report, outcome: CrashOutcome): Summary {
  const { lost, cameBack, sharedFences, overlaps, disorders, findings, ...figures } = outcome
  const { version, accepted, runs, runsAgain, completed, kills, stops, terminations, refused, dead } = figures
  report.say(`the server: ${version}, fsync on`)
  report.say(
    `${accepted.plain} jobs and ${accepted.ordered} ordered payloads accepted; ${runs} runs, ${runsAgain} of them again; ${completed} completions confirmed`,
  )
  report.say(
    `${kills.workers} workers and ${kills.producers} producers killed with SIGKILL, ${stops} immediate stops of the server, ${terminations} backends terminated`,
  )
  report.say(`${refused} settles refused; failed calls: ${JSON.stringify(figures.failedCalls)}`)
  const none = (claim: string, found: readonly string[]) =>
    report.claim(`${claim} (${[found.length, ...found.slice(0, 3)].join(', ')})`, found.length === 0)
  none('no accepted job is lost', lost)
  none('no job whose completion was confirmed comes back', cameBack)
  none('no fence is given twice', sharedFences)
  none('no ordered id runs twice at a time', overlaps)
  none('the payloads of an id come in their order', disorders)
  none('what the store holds fits together', findings)
  report.claim(`nothing is buried (${dead})`, dead === 0)
  return figures
}
