/**
 * The servers of a namespace, one, or on a cluster each master that holds a part of it: what they report about themselves, and
 * what this user may do there.
 */

import type { RedisClient } from '../client/redis-client.js'
import { textIn } from '../client/redis-reply.js'
import { redisScript } from '../client/redis-script.js'
import { type RedisInfo, redisInfo } from '../client/redis-server-info.js'

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

/**
 * KEYS: any key on the server in question. No ARGV.
 * Returns the text of INFO.
 */
const infoScript = redisScript('server-info', `return redis.call('INFO')`, { readOnly: true })

/**
 * KEYS: any key on the server in question. ARGV: for each command the number of its words, then the words.
 * Returns for each command 1 if this user may run it, 0 if not, -1 if the server has no such command. Runs none.
 */
export const rightsScript = redisScript(
  'server-rights',
  `
local answers, from = {}, 1
while from <= #ARGV do
  local count = tonumber(ARGV[from])
  local is_known, may = pcall(redis.acl_check_cmd, unpack(ARGV, from + 1, from + count))
  answers[#answers + 1] = not is_known and -1 or (may and 1 or 0)
  from = from + 1 + count
end
return answers
`,
  { readOnly: true },
)
