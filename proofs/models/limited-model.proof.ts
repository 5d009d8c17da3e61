/**
 * Proof: over random sequences of commands on queues with throttles, bounds, holds and groups, and with a restart of
 * the store, SQLite and Redis answer and hold the same as the memory store after every step. The comparison catches
 * mutations of their SQL and Lua.
 */

import { redisHarness, sqliteHarness, startRedis } from 'millrace/store-testing'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { catchAll, playAll } from './model.js'
import type { Draws } from './mutants.js'
import { redisLimitedMutations } from './redis-limited-mutations.js'
import { sqliteLimitedMutations } from './sqlite-limited-mutations.js'

export const seed = 900_000

const limited = (offset: number, sequences: number, steps: number): Draws => ({
  kind: 'limited',
  seed: seed + offset,
  sequences,
  steps,
})

export async function prove(report: Report): Promise<Summary> {
  const [single, cluster] = [await startRedis(), await startRedis({ mode: 'cluster' })]
  try {
    report.say(`the server: ${await redisVersion(single)}`)
    const draws = [limited(0, 1_000, 80), limited(10_000, 10, 600)]
    const differences = {
      sqlite: await playAll(report, 'SQLite', sqliteHarness, draws),
      redis: await playAll(report, 'a single Redis', redisHarness(single.url), draws),
      cluster: await playAll(report, 'a cluster of three', redisHarness(cluster.url), [limited(20_000, 60, 80)]),
    }
    const trial = limited(0, 200, 120)
    const survivors = [
      ...(await catchAll(report, sqliteLimitedMutations, 'sqlite', trial)),
      ...(await catchAll(report, redisLimitedMutations, single.url, trial)),
    ]
    const mutants = sqliteLimitedMutations.length + redisLimitedMutations.length
    return { differences, mutants, survivors }
  } finally {
    await Promise.all([single.stop(), cluster.stop()])
  }
}
