/** The harness of every store. A line here puts a store under the contract suite and beside the memory store. */

import { type HarnessMaker, memoryHarness, type RedisMode, startRedis } from 'millrace/store-testing'
import { postgresHarness } from '#src/store-testing/harness/postgres-harness.js'
import { redisHarness } from '#src/store-testing/harness/redis-harness.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { sqsFifoHarness, sqsHarness } from './sqs/sqs-harness.js'

export const harnesses: ReadonlyMap<string, HarnessMaker> = new Map<string, HarnessMaker>([
  ['memory', memoryHarness],
  ['sqlite', sqliteHarness],
  ['redis', redisOn('single')],
  ['redis-cluster', redisOn('cluster')],
  ['redis-sentinel', redisOn('sentinel')],
  ['postgres', postgresOn()],
  ['sqs', sqsHarness],
  ['sqs-fifo', sqsFifoHarness],
])

/** Servers of its own for each process that runs tests; they end with it. */
function redisOn(mode: RedisMode): HarnessMaker {
  let started: Promise<HarnessMaker> | undefined
  return async (options) => {
    started ??= startRedis({ mode }).then(({ url }) => redisHarness(url, mode === 'single' ? 'redis' : `redis-${mode}`))
    return (await started)(options)
  }
}

function postgresOn(): HarnessMaker {
  let started: Promise<HarnessMaker> | undefined
  return async (options) => {
    started ??= PostgresServer.start().then(({ url }) => postgresHarness(url))
    return (await started)(options)
  }
}
