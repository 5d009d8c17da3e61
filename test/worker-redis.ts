/** One Redis for all test files that a process runs and that keep to namespaces of their own. It ends with the process. */

import { type RedisServer, startRedis } from 'millrace/store-testing'

let started: Promise<RedisServer> | undefined

export function workerRedis(): Promise<RedisServer> {
  started ??= startRedis()
  return started
}
