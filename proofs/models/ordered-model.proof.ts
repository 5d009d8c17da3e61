/**
 * Proof: over random sequences of commands on ordered queues, with every rule of merging and everything that may happen
 * between commands, SQLite and Redis answer and hold the same as the memory store after every step. The comparison
 * catches mutations of their SQL and Lua.
 */

import { redisHarness, sqliteHarness, startRedis } from 'millrace/store-testing'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { catchAll, playAll } from './model.js'
import type { Draws } from './mutants.js'
import { redisMergeMutations } from './redis-merge-mutations.js'
import { redisOrderedMutations } from './redis-ordered-mutations.js'
import { sqliteOrderedMutations } from './sqlite-ordered-mutations.js'

export const seed = 700_000

const ordered = (offset: number, sequences: number, steps: number): Draws => ({
  kind: 'ordered',
  seed: seed + offset,
  sequences,
  steps,
})

export async function prove(report: Report): Promise<Summary> {
  const [single, cluster] = [await startRedis(), await startRedis({ mode: 'cluster' })]
  const redisMutations = [...redisMergeMutations, ...redisOrderedMutations]
  try {
    report.say(`the server: ${await redisVersion(single)}`)
    const draws = [ordered(0, 2_000, 60), ordered(10_000, 20, 600)]
    const differences = {
      sqlite: await playAll(report, 'SQLite', sqliteHarness, draws),
      redis: await playAll(report, 'a single Redis', redisHarness(single.url), draws),
      cluster: await playAll(report, 'a cluster of three', redisHarness(cluster.url), [ordered(20_000, 120, 60)]),
    }
    const trial = ordered(0, 80, 300)
    const survivors = [
      ...(await catchAll(report, sqliteOrderedMutations, 'sqlite', trial)),
      ...(await catchAll(report, redisMutations, single.url, trial)),
    ]
    const mutants = sqliteOrderedMutations.length + redisMutations.length
    return { differences, mutants, survivors }
  } finally {
    await Promise.all([single.stop(), cluster.stop()])
  }
}
