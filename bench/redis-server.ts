/** The Redis servers of the benchmark. */

import { type StartedRedis, startRedis } from 'millrace/store-testing'

/**
 * With an append-only file synced every second: what it answered survives its own death, and at most a second is lost with
 * the machine. Rewrites of that file are left out, as they would fall into one round and not into another.
 */
export function startRedisServer(): Promise<StartedRedis> {
  return startRedis({ config: ['appendonly yes', 'appendfsync everysec', 'auto-aof-rewrite-percentage 0'] })
}
