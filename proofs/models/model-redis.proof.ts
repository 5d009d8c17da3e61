/**
 * Proof: over random sequences of commands the Redis store answers and holds, after every step, the same as the memory
 * store. It runs on a single server and on a cluster, also while the servers forget their scripts again and again. The
 * comparison catches mutations of its Lua. The contract catches those that concern wake-ups.
 */

import { type StartedRedis, startRedis } from 'millrace/store-testing'
import { redisHarness } from '#src/store-testing/harness/redis-harness.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { catchAll, playAll } from './model.js'
import { redisMutations } from './redis-mutations.js'

export const seed = 600_000

const steps = 60
const flushEveryMs = 50

export async function prove(report: Report): Promise<Summary> {
  const [single, cluster] = [await startRedis(), await startRedis({ mode: 'cluster' })]
  try {
    report.say(`the server: ${await redisVersion(single)}`)
    const differences = {
      single: await playAll(report, 'a single server', redisHarness(single.url), [
        { seed, sequences: 1_200, steps },
        // Long sequences reach states that need a long history.
        { seed: seed + 2_000, sequences: 20, steps: 600 },
      ]),
      cluster: await playAll(report, 'a cluster of three', redisHarness(cluster.url), [
        { seed: seed + 3_000, sequences: 120, steps },
        { seed: seed + 4_000, sequences: 10, steps: 600 },
      ]),
      flushed: await flushed(report, single, 'a single server', seed + 5_000),
      flushedCluster: await flushed(report, cluster, 'a cluster of three', seed + 6_000),
    }
    const survivors = await catchAll(report, redisMutations, single.url, { seed, sequences: 80, steps: 300 })
    return { differences, mutants: redisMutations.length, survivors }
  } finally {
    await Promise.all([single.stop(), cluster.stop()])
  }
}

/** Plays sequences as always, while the servers are ordered to forget all scripts. */
async function flushed(report: Report, { url, servers }: StartedRedis, where: string, seed: number): Promise<number> {
  let flushes = 0
  const timer = setInterval(() => {
    for (const server of servers) void server.ask('SCRIPT', 'FLUSH').then(() => (flushes += 1))
  }, flushEveryMs)
  try {
    return await playAll(report, `${where}, SCRIPT FLUSH every ${flushEveryMs} ms`, redisHarness(url), [
      { seed, sequences: 120, steps },
    ])
  } finally {
    clearInterval(timer)
    report.claim(`scripts were forgotten all along (${flushes} times)`, flushes > 120)
  }
}
