/** The settings given to the shards of a Redis queue, and what its shards tell of them. */

import type { QueueBasis } from '../../contract/queue-settings.js'
import { refuseOtherForm } from '../../rules/queue-form.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import type { RedisQueue, RedisShard } from '../layout/redis-layout.js'
import { runOn } from '../lua/script-kinds.js'
import { openScript } from './open-script.js'
import { formIn, isSaid, type SaidLimits, settingArgs } from './redis-settings.js'

/** The answer of the first shard that exists; if the queue is moving, the old ones may be gone. Null if none exists. */
export async function stateOf(client: RedisClient, { shards, next }: RedisQueue): Promise<RedisReply> {
  for (const shard of [shards[0]!, ...next.slice(0, 1)]) {
    const reply = await runOn(client, shard, openScript, ['0'])
    if (reply !== null) return reply
  }
  return null
}

/**
 * Gives all shards these settings. The first that exists decides: if it has later limits, the others are left alone.
 * Returns what it tells. Throws `ConfigConflictError` if it is stored in another form.
 */
export async function giveSettings(
  client: RedisClient,
  { name, layout, shards, next }: RedisQueue,
  settings: QueueBasis,
  said: SaidLimits,
): Promise<RedisReply> {
  // If the queue is moving, the process that moves it creates the next shards.
  const verb = layout.towards === undefined ? '1' : '2'
  const give = (shard: RedisShard) => {
    const count = next.includes(shard) ? next.length : layout.shards
    return runOn(client, shard, openScript, [verb, ...settingArgs(settings, said, count)])
  }
  const rest = [...shards, ...next]
  let reply: RedisReply = null
  while (reply === null && rest.length > 0) reply = await give(rest.shift()!)
  if (reply === null) return null
  // Another process may be first: the creator of the first shard decides the form of all.
  refuseOtherForm(name, formIn(reply), settings)
  if (isSaid(reply, said)) await Promise.all(rest.map(give))
  return reply
}
