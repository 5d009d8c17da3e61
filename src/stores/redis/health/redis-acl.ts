/** The access rights of a Redis store: every command it needs, and the user that may run these and no others. Pure. */

import { keysOf, queuesKey, shardTag, workersKey } from '../redis-keys.js'

export interface RedisRight {
  /** The name in access rules: `hget`, `client|id`. */
  readonly rule: string
  /** The command with typical arguments. */
  readonly words: readonly string[]
}

/** Any name will do, because the rights for all queues are the same. */
const anyQueue = 'any'

/** Placeholders of arguments: `K` a key of a shard, `Q` the queues, `W` the workers, `C` a channel. */
const everywhere = [
  'eval x 1 K',
  'evalsha x 1 K',
  'time',
  'exists K',
  'type K',
  'del K',
  'expire K 1',
  'hget K f',
  'hget Q f',
  'hset K f v',
  'hset W f v',
  'hsetnx Q f v',
  'hmget K f',
  'hdel K f',
  'hdel W f',
  'hkeys Q',
  'hgetall K',
  'hlen K',
  'hexists K f',
  'hincrby K f 1',
  'hscan K 0',
  'hrandfield K',
  'pexpire K 1',
  'pttl K',
  'llen K',
  'lindex K 0',
  'lrange K 0 0',
  'ltrim K 0 -1',
  'lpop K',
  'rpush K v',
  'zadd K 0 m',
  'zrem K m',
  'zcard K',
  'zscore K m',
  'zmscore K m',
  'zlexcount K - +',
  'zcount K 0 0',
  'zremrangebylex K - +',
  'zremrangebyscore K 0 0',
  'zscan K 0',
  'zrange K 0 0',
  'zremrangebyrank K 0 0',
  'zpopmin K',
  'scan 0',
  'wait 0 1',
  'info',
  'ping',
  'client|id',
  'client|setname n',
]
const alone = ['bzpopmin K 0', 'client|unblock 1', 'publish C m', 'subscribe C', 'unsubscribe C', 'select 0']
const clustered = [
  'spublish C m',
  'ssubscribe C',
  'sunsubscribe C',
  'pubsub|shardnumsub C',
  'cluster|slots',
  'cluster|info',
]

export function rightsOf(namespace: string, isCluster: boolean): RedisRight[] {
  const [key] = keysOf(shardTag(namespace, anyQueue, 0, 1))
  const stand: Readonly<Record<string, string>> = {
    K: key!,
    C: key!,
    Q: queuesKey(namespace),
    W: workersKey(namespace),
  }
  return [...everywhere, ...(isCluster ? clustered : alone)].map((line) => {
    const [rule, ...args] = line.split(' ')
    return { rule: rule!, words: [...rule!.split('|'), ...args.map((word) => stand[word] ?? word)] }
  })
}

/** The command line that creates such a user. */
export function userLine(namespace: string, isCluster: boolean): string {
  const prefix = `{${globLiteral(namespace)}`
  const rules = [...new Set(rightsOf(namespace, isCluster).map(({ rule }) => `+${rule}`))]
  const where = [`~${prefix}}*`, `~${prefix}:*`, `&${prefix}:*`]
  return `ACL SETUSER millrace on >PASSWORD resetkeys resetchannels -@all ${[...where, ...rules].join(' ')}`
}

/** The text as a glob pattern that matches only this text. */
export function globLiteral(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&')
}
