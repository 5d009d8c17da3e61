/**
 * Proof: workers on Redis survive everything. They are killed and stopped, poisoned, blocked and signalled. Redis, with
 * an append-only file synced every second, is killed and stopped too. The audit is written inside the store's own
 * scripts, in every process.
 */

import { startRedis } from 'millrace/store-testing'
import { redisGround } from '../ground.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { blocked, cancel, chaos, lasting, latency, poison, stops } from './worker-drills.js'

export const seed = 20_260_004

export async function prove(report: Report): Promise<Summary> {
  const calm = await startRedis()
  try {
    report.say(`the server: ${await redisVersion(calm)}`)
    return {
      chaos: await chaos(report, seed, { kills: 80, stops: 40, crashes: 6 }, redisGround),
      poison: await poison(report, redisGround),
      stops: await stops(report, redisGround),
      blocked: await blocked(report, redisGround),
      cancelMs: await cancel(report, redisGround),
      latency: await latency(report, calm.url),
      endurance: await lasting(report, calm.url),
    }
  } finally {
    await calm.stop()
  }
}
