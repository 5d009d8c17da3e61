/** The harness of the Redis store: a namespace of its own on a real server, a clock in the hand, and the audit around every script. */

import { redisAddress } from '../stores/redis/redis-address.js'
import { openRedisPort } from '../stores/redis/redis-connection.js'
import { shardTag } from '../stores/redis/redis-keys.js'
import { listIn, textIn } from '../stores/redis/redis-reply.js'
import { RedisStore } from '../stores/redis/redis-store.js'
import { auditEntries, auditedPort } from './redis-audit.js'
import { redisState } from './redis-state.js'
import { defaultStartAt, type HarnessMaker, type StoreHarness } from './store-harness.js'

/** Makes harnesses on the server, the sentinels' master or the cluster at `url`; all data stay there. */
export function redisHarness(url: string, name = 'redis'): HarnessMaker {
  const address = redisAddress(url)
  return async ({ startAt = defaultStartAt } = {}): Promise<StoreHarness> => {
    const namespace = `test-${process.pid}-${++made}`
    const eyes = openRedisPort(address)
    const handles: RedisStore[] = []
    let now = startAt
    let isOpen = true

    const queues = async () => listIn(await eyes.command('HKEYS', [`{${namespace}}:queues`])).map(textIn)

    return {
      name,
      async open() {
        const store = new RedisStore({ port: auditedPort(openRedisPort(address), namespace, () => now), namespace })
        handles.push(store)
        return store
      },
      async advance(ms) {
        now += ms
      },
      dump: async () => redisState(eyes, namespace, await queues(), now),
      async audit() {
        const keys = eyes.isCluster
          ? (await queues()).map((queue) => `${shardTag(namespace, queue, 0, 1)}:audit`)
          : [`{${namespace}}:audit`]
        const lists = await Promise.all(keys.map(async (key) => listIn(await eyes.command('LRANGE', [key, '0', '-1']))))
        const entries = lists.flatMap(auditEntries)
        // Sorting is stable: those of one shard stay in their order.
        return entries.sort((a, b) => a.at - b.at)
      },
      async close() {
        for (const store of handles.splice(0)) await store.close()
        if (isOpen) await eyes.close()
        isOpen = false
      },
    }
  }
}

let made = 0
