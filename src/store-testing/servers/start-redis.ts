/** `startRedis`: real Redis or Valkey servers for tests, alone, as a cluster or behind Sentinels. */

import { type ClusterOptions, ClusterServers } from './cluster-servers.js'
import { RedisServer, type RedisServerOptions } from './redis-server-process.js'
import { SentinelServers } from './sentinel-servers.js'

export type RedisMode = 'single' | 'cluster' | 'sentinel'

/** The members of every mode: its address, its servers, and its end. */
export interface StartedRedis {
  /** For a store descriptor: `redis://h:p`, `redis+cluster://h:p,h:p,h:p` or `redis+sentinel://h:p,h:p,h:p/mymaster`. */
  readonly url: string
  /** The servers that hold data. */
  readonly servers: readonly RedisServer[]
  /** Kills all of them and removes their data. Stopping twice is harmless. */
  stop(): Promise<void>
}

/**
 * Starts real servers on free ports of 127.0.0.1, with their data in directories of their own; resolves when they
 * serve. They end with this process, even if it is killed. The binary is `$REDIS_SERVER`, otherwise `valkey-server` or
 * `redis-server` on the PATH, otherwise Debian's, unpacked once into `node_modules/.cache`.
 *
 * Default: a single server that writes nothing to disk. Throws `RedisServerMissingError`, which says how to get a
 * server, and an error with the output of a server that does not start.
 */
export function startRedis(options?: { readonly mode?: 'single' } & RedisServerOptions): Promise<RedisServer>
export function startRedis(options: { readonly mode: 'cluster' } & ClusterOptions): Promise<ClusterServers>
export function startRedis(options: { readonly mode: 'sentinel' } & RedisServerOptions): Promise<SentinelServers>
export function startRedis(options: { readonly mode: RedisMode } & ClusterOptions): Promise<StartedRedis>
export async function startRedis({
  mode = 'single',
  ...options
}: { readonly mode?: RedisMode } & ClusterOptions = {}): Promise<StartedRedis> {
  if (mode === 'cluster') return ClusterServers.start(options)
  if (mode === 'sentinel') return SentinelServers.start(options)
  return RedisServer.start(options)
}
