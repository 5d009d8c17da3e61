/**
 * Proof: a failover loses nothing and repeats nothing that was confirmed, if commits wait for the standby. Under load the primary
 * ends at once and for good, and the standby takes over; producers and workers know both hosts, and some of them are killed
 * meanwhile. What is judged is what they wrote down, as in `postgres-crashes`. `JOBS` and `FAILOVERS` in the environment change the
 * counts. It takes some minutes.
 */

import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { reportCrashes } from './crash-report.js'
import { drillCrashes } from './crashes-drill.js'
import { PostgresPair } from './postgres-pair.js'

export const seed = 20_261_132

const { JOBS: jobs = '20000', FAILOVERS: failovers = '5' } = process.env

export async function prove(report: Report): Promise<Summary> {
  const outcome = await drillCrashes({
    jobs: Number(jobs),
    ...{ workers: 4, producers: 2, terminations: 10 },
    kills: { workers: 6, producers: 2 },
    stops: Number(failovers),
    random: seededRandom(seed),
    withinMs: 900_000,
    behind: (server) => PostgresPair.of(server),
  })
  report.say('each stop is a failover: the standby, which has each commit before it is answered, takes over')
  report.claim(`the standby took over ${failovers} times`, outcome.stops === Number(failovers))
  return reportCrashes(report, outcome)
}
