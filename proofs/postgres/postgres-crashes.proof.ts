/**
 * Proof: nothing that a Postgres store accepted is lost, and nothing that it took as completed comes back. Producers and workers are
 * killed with SIGKILL, the server is stopped at once and started again, and backends are terminated, all under load, with fsync
 * on. Plain and ordered jobs; producers and handlers write down what they did, and only that is judged. `JOBS` and `KILLS` in the
 * environment change the counts. It takes about ten minutes.
 */

import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { drillCrashes } from './crashes-drill.js'

export const seed = 20_261_130

const jobs = Number(process.env['JOBS'] ?? 200_000)
const kills = Number(process.env['KILLS'] ?? 100)

export async function prove(report: Report): Promise<Summary> {
  const outcome = await drillCrashes({
    jobs,
    ...{ workers: 4, producers: 2 },
    kills: { workers: Math.ceil(kills * 0.8), producers: Math.floor(kills * 0.2) },
    ...{ stops: 4, terminations: 100 },
    random: seededRandom(seed),
    withinMs: 1_200_000,
  })
  const { accepted, runs, runsAgain, completed, lost, cameBack, sharedFences, overlaps, disorders } = outcome
  report.say(`the server: ${outcome.version}, fsync on`)
  report.say(
    `${accepted.plain} jobs and ${accepted.ordered} ordered payloads accepted; ${runs} runs, ${runsAgain} of them again; ${completed} completions confirmed`,
  )
  report.say(
    `${outcome.kills.workers} workers and ${outcome.kills.producers} producers killed with SIGKILL, ${outcome.stops} immediate stops of the server, ${outcome.terminations} backends terminated`,
  )
  report.say(`${outcome.refused} settles refused; failed calls: ${JSON.stringify(outcome.failedCalls)}`)
  report.claim('the drill did all that it was to do', outcome.stops === 4 && accepted.plain >= jobs)
  report.claim(`no accepted job is lost (${told(lost)})`, lost.length === 0)
  report.claim(`no job whose completion was confirmed comes back (${told(cameBack)})`, cameBack.length === 0)
  report.claim(`no fence is given twice (${told(sharedFences)})`, sharedFences.length === 0)
  report.claim(`no ordered id runs twice at a time (${told(overlaps)})`, overlaps.length === 0)
  report.claim(`the payloads of an id come in their order (${told(disorders)})`, disorders.length === 0)
  report.claim(`nothing is buried (${outcome.dead})`, outcome.dead === 0)
  report.claim(`all fits together ${outcome.findings.join(' · ')}`.trim(), outcome.findings.length === 0)
  const { lost: _, cameBack: __, sharedFences: ___, overlaps: ____, disorders: _____, ...figures } = outcome
  return figures
}

function told(found: readonly string[]): string {
  return [String(found.length), ...found.slice(0, 3)].join(', ')
}
