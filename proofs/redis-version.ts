/** The version of a Redis or Valkey server, in the form that proofs print it. */

import type { RedisServer } from 'millrace/store-testing'

export async function redisVersion(server: RedisServer): Promise<string> {
  const about = String(await server.ask('INFO', 'server'))
  const [, valkey] = /valkey_version:(\S+)/.exec(about) ?? []
  const [, redis] = /redis_version:(\S+)/.exec(about) ?? []
  return valkey === undefined ? `Redis ${redis}` : `Valkey ${valkey}`
}
