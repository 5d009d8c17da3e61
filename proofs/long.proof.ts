/**
 * Proof: isolated jobs outlive their workers and their store, run once, and leave nothing behind: workers are killed by the
 * dozen, a job of half an hour goes through restarts and an outage, and a worker of a thousand jobs has not grown.
 */

import { startRedis } from 'millrace/testing'
import { seededRandom } from '../test/seeded-random.js'
import { killedWorkers, oneLongRun } from './long-drills.js'
import { growth } from './long-growth.js'
import type { Report, Summary } from './report.js'

export const seed = 20_260_007

const kills = { jobs: 60, slots: 4, kills: 40 }
const longRun = { ms: 30 * 60_000, workerKills: 10, serverKills: 3, outageMs: 20_000 }
const [few, many] = [200, 1_000]

export async function prove(report: Report): Promise<Summary> {
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
  const [before, after] = await growth(few, many)
  const heapPerJob = (after.heapUsed - before.heapUsed) / (many - few)
  report.say(`a worker after ${few} jobs: ${JSON.stringify(before)}; after ${many}: ${JSON.stringify(after)}`)
  report.claim(
    'no handle and no zombie more',
    after.handles <= before.handles && after.open <= before.open && after.zombies === 0,
  )
  report.claim(`at most 1 KB of heap a job (${heapPerJob.toFixed(0)} B)`, heapPerJob <= 1_024)
  report.claim(`resident memory at most 1.1 × (${(after.rss / before.rss).toFixed(3)})`, after.rss <= before.rss * 1.1)
  figures['growth'] = { before, after }
  const run = await oneLongRun(longRun)
  report.say(`one job of ${longRun.ms / 60_000} min with a lease of 5 s: ${JSON.stringify(run)}`)
  report.claim(
    `it ran once through ${run.workerKills} kills of its worker, ${run.serverKills} of Redis and an outage of ${run.outageMs / 1_000} s`,
    run.begun === 1 && run.ended === 1 && run.crashed === 0 && run.failed === 0,
  )
  figures['longRun'] = run
  return figures
}
