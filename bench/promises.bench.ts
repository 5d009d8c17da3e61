/** What promises cost on a Redis server: Millrace beside the prototype, and beside prototypes that keep some of them. */

import type { BenchReport } from './bench.js'
import { promiseNames, promiseSteps } from './contenders/contender.js'
import { promiseTitles } from './contenders/prototype-promises.js'
import { RedisField } from './redis/redis-field.js'
import { enqueueing, enqueueingMany, processing, race } from './redis/redis-race.js'
import { startRedisServer } from './redis/redis-server.js'

const races = [processing('process', 100), enqueueing('enqueue', 1_000), enqueueingMany('enqueueMany', 1_000)]
const length = { renewals: 0, rounds: 5, roundMs: 1_000 }

export async function bench(report: BenchReport): Promise<unknown> {
  const server = await startRedisServer()
  const field = new RedisField(server.url, ['millrace', 'prototype', ...promiseNames])
  try {
    await field.renew()
    report.say('the prototype, and with each of these in addition to those before:')
    for (const step of promiseSteps) report.say(`  with ${step.padEnd(7)} ${promiseTitles[step]}`)
    const ratios: Record<string, number> = {}
    for (const one of races) Object.assign(ratios, await race(report, field, one, length))
    return { ratios }
  } finally {
    await field.end()
    await server.stop()
  }
}
