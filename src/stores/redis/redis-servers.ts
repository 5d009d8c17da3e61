/** The servers that a namespace lies on: one, or of a cluster each master that holds a part of it. */

import { infoScript } from './lua/server-scripts.js'
import type { RedisPort } from './redis-port.js'
import { textIn } from './redis-reply.js'

/** The fields of what INFO says. */
export type RedisInfo = ReadonlyMap<string, string>

export interface RedisServerSeen {
  readonly info: RedisInfo
  /** Those of the keys asked about that lie there. */
  readonly keys: readonly string[]
}

/** `keys`: at least one; on a single server all lie there. */
export async function serversOf(port: RedisPort, keys: readonly string[]): Promise<RedisServerSeen[]> {
  const servers = new Map<string, RedisServerSeen>()
  for (const key of port.isCluster ? keys : keys.slice(0, 1)) {
    const info = infoIn(textIn(await port.run(infoScript, [key], [])))
    const id = info.get('run_id') ?? ''
    servers.set(id, { info, keys: [...(servers.get(id)?.keys ?? []), key] })
  }
  return [...servers.values()]
}

/** Fields of a reply such as that of INFO: `name:value`, one a line. */
export function infoIn(text: string): RedisInfo {
  const lines = text.split(/\r?\n/).filter((line) => /^\w+:/.test(line))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}
