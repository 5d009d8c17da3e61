/** The Redis servers of the benchmark. */

import { type StartedRedis, startRedis } from 'millrace/store-testing'

/**
 * With an append-only file synced every second: a killed server keeps what it answered, and the loss of the machine
 * costs at most a second. Rewrites of that file are off: they would fall into one round and not into another.
 */
export function startRedisServer(): Promise<StartedRedis> {
  return startRedis({ config: ['appendonly yes', 'appendfsync everysec', 'auto-aof-rewrite-percentage 0'] })
}
