/** The cost of watching a worker: Millrace compared with itself without history, in alternating rounds of one run. */

import { cpus } from 'node:os'
import { resolve } from 'node:path'
import type { BenchReport } from './bench.js'
import { watchNames } from './contenders/contender.js'
import { RedisField } from './redis/redis-field.js'
import { enqueueing, processing, race } from './redis/redis-race.js'
import { startRedisServer } from './redis/redis-server.js'

const races = [processing('process', 100), processing('process10', 10), enqueueing('enqueue', 1_000)]
/** The difference to find is smaller than the difference between two processes of one build. */
const full = { renewals: 8, rounds: 5, roundMs: 1_200 }
/** Shows that everything runs; its figures mean nothing. */
const quick = { renewals: 0, rounds: 1, roundMs: 300 }

/**
 * Options. `--baseline=../earlier`: also compares with Millrace as built in that checkout, for example from before
 * there was tracing.
 */
export async function bench(report: BenchReport): Promise<unknown> {
  const baseline = process.argv.find((argument) => argument.startsWith('--baseline='))?.slice('--baseline='.length)
  const plan = process.argv.includes('--quick') ? quick : full
  const server = await startRedisServer()
  const field = new RedisField(
    server.url,
    ['millrace', ...watchNames, ...(baseline === undefined ? [] : (['baseline'] as const))],
    baseline === undefined ? undefined : resolve(baseline),
  )
  try {
    await field.renew()
    report.say(
      `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}, appendfsync everysec, medians of ${Math.max(1, plan.renewals) * plan.rounds} rounds (spread)`,
    )
    const ratios: Record<string, number> = {}
    for (const one of races) Object.assign(ratios, await race(report, field, one, plan))
    return { ratios }
  } finally {
    await field.end()
    await server.stop()
  }
}
