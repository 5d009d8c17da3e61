/**
 * Proof: isolated jobs outlive their workers and their store, and run once. Workers are killed by the dozen, and a job
 * of half an hour survives restarts and an outage.
 */

import { startRedis } from 'millrace/store-testing'
import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { killedWorkers, oneLongRun } from './long-drills.js'

export const seed = 20_260_007

const kills = { jobs: 60, slots: 4, kills: 40 }
const longRun = { ms: 30 * 60_000, workerKills: 10, serverKills: 3, outageMs: 20_000 }

export async function prove(report: Report): Promise<Summary> {
  // This job does almost nothing for half an hour. The other drills run at the same time.
  const longest = oneLongRun(longRun)
  longest.catch(() => {})
  const redis = await startRedis()
  const figures: Record<string, unknown> = {}
  for (const [name, store] of [['SQLite', undefined] as const, ['Redis', redis.url] as const]) {
    const outcome = await killedWorkers({ ...kills, random: seededRandom(seed) }, store)
    report.say(
      `${name}: ${outcome.jobs} jobs, ${outcome.kills} × kill -9 of their worker, ${outcome.adopted} adoptions`,
    )
    report.claim(
      `${name}: each job was begun once and completed (${outcome.begun})`,
      outcome.begun === kills.jobs && outcome.completed === kills.jobs,
    )
    report.claim(
      `${name}: never more at once than there are slots (${outcome.mostAtOnce})`,
      outcome.mostAtOnce <= kills.slots,
    )
    figures[name] = outcome
  }
  await redis.stop()
  const run = await longest
  report.say(`one job of ${longRun.ms / 60_000} min with a lease of 5 s: ${JSON.stringify(run)}`)
  report.claim(
    `it ran once through ${run.workerKills} kills of its worker, ${run.serverKills} of Redis and an outage of ${run.outageMs / 1_000} s`,
    run.begun === 1 && run.ended === 1 && run.crashed === 0 && run.failed === 0,
  )
  figures['longRun'] = run
  return figures
}
