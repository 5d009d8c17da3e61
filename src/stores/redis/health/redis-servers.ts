/** The servers of a namespace: one, or on a cluster each master that holds a part of it. */

import type { RedisClient } from '../client/redis-client.js'
import { textIn } from '../client/redis-reply.js'
import { type RedisInfo, redisInfo } from '../client/redis-server-info.js'
import { infoScript } from './server-scripts.js'

export interface RedisServerSeen {
  readonly info: RedisInfo
  /** The given keys that are on this server. */
  readonly keys: readonly string[]
}

/** `keys`: at least one. On a single server all are on it. */
export async function serversOf(client: RedisClient, keys: readonly string[]): Promise<RedisServerSeen[]> {
  const servers = new Map<string, RedisServerSeen>()
  for (const key of client.isCluster ? keys : keys.slice(0, 1)) {
    const info = redisInfo(textIn(await client.run(infoScript, [key], [])))
    const id = info.get('run_id') ?? ''
    servers.set(id, { info, keys: [...(servers.get(id)?.keys ?? []), key] })
  }
  return [...servers.values()]
}
