/** The info of a Redis server: what it reports about itself, and whether it is fit for a store. Pure. */

import { unfit } from '../../../core/values/store-address.js'

/** The fields of a reply to `INFO`. */
export type RedisInfo = ReadonlyMap<string, string>

export function redisInfo(text: string): RedisInfo {
  const lines = text.split(/\r?\n/).filter((line) => /^\w+:/.test(line))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/**
 * Throws `ConfigError` if the server is unfit. `kind` `'other'`: a sentinel or a cluster finds the master by itself.
 */
export function refuseUnfit(where: string, kind: 'single' | 'other', info: RedisInfo): void {
  const version = versionOf(info)
  if (info.get('valkey_version') === undefined && Number.parseInt(version, 10) < 7)
    throw unfit(
      `the Redis at ${where} is version ${version}; a store needs Redis 7.0 or Valkey 7.2 and above. Upgrade it.`,
    )
  if (kind === 'single' && info.get('role') === 'slave')
    throw unfit(
      `the Redis at ${where} is a replica of ${info.get('master_host')}:${info.get('master_port')} and takes no writes. ` +
        "Give the master's address, or let Sentinel name it: 'redis+sentinel://host:port/master'.",
    )
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  if (policy !== 'noeviction')
    throw unfit(
      `the Redis at ${where} deletes keys when its memory is full (maxmemory-policy '${policy}'): jobs would be lost. ` +
        "Run 'CONFIG SET maxmemory-policy noeviction', set it in its configuration too, or use another Redis.",
    )
}

function versionOf(info: RedisInfo): string {
  const valkey = info.get('valkey_version')
  return valkey === undefined ? (info.get('redis_version') ?? 'unknown') : `valkey ${valkey}`
}
