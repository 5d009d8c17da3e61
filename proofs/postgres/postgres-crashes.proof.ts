/**
 * Proof: nothing that a Postgres store accepted is lost, and nothing that it took as completed comes back. Producers and workers are
 * killed with SIGKILL, the server is stopped at once and started again, and backends are terminated, all under load, with fsync
 * on. Plain and ordered jobs; producers and handlers write down what they did, and only that is judged. `JOBS` and `KILLS` in the
 * environment change the counts. It takes about half an hour.
 */

import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { reportCrashes } from './crash-report.js'
import { drillCrashes } from './crashes-drill.js'

export const seed = 20_261_130

const { JOBS: jobs = '200000', KILLS: kills = '100' } = process.env

export async function prove(report: Report): Promise<Summary> {
  const plan = {
    jobs: Number(jobs),
    ...{ workers: 4, producers: 2 },
    kills: { workers: Math.ceil(Number(kills) * 0.8), producers: Math.floor(Number(kills) * 0.2) },
    ...{ stops: 4, terminations: 40 },
  }
  const outcome = await drillCrashes({ ...plan, random: seededRandom(seed), withinMs: 3_600_000 })
  report.claim(
    'the drill did all that it was to do',
    outcome.stops === plan.stops && outcome.accepted.plain >= plan.jobs && outcome.kills.workers === plan.kills.workers,
  )
  return reportCrashes(report, outcome)
}
