/**
 * The harness of the Redis store: a namespace of its own on a real server, a manual clock, and the audit around every
 * script.
 */

import { redisAddress } from '../../stores/redis/client/redis-address.js'
import { openRedisClient } from '../../stores/redis/client/redis-connection.js'
import { listIn, rowsIn, textIn } from '../../stores/redis/client/redis-reply.js'
import { queuesKey } from '../../stores/redis/redis-keys.js'
import { layoutIn, queueIn, type RedisQueue } from '../../stores/redis/redis-layout.js'
import { RedisStore } from '../../stores/redis/redis-store.js'
import { redisState } from '../state/redis-state.js'
import { auditEntries, auditedClient } from './redis-audit.js'
import { defaultStartAt, type HarnessMaker, type StoreHarness } from './store-harness.js'

/** For an ordered queue that a test opens, the audits of this many shards are read. */
const mostShards = 8

/** The uptime of a server that was never restarted: 20 years. */
const upForMs = 20 * 365 * 86_400_000

/** Makes harnesses on the server, the sentinels' master or the cluster at `url`; all data stay there. */
export function redisHarness(url: string, name = 'redis'): HarnessMaker {
  const address = redisAddress(url)
  return async ({ startAt = defaultStartAt, mostClaimBytes } = {}): Promise<StoreHarness> => {
    const namespace = `test-${process.pid}-${++made}`
    const eyes = openRedisClient(address)
    const handles: RedisStore[] = []
    let now = startAt
    let runs = 1
    let startedAt = now - upForMs
    let isOpen = true

    const queues = async () => {
      const rows = rowsIn(await eyes.command('HGETALL', [queuesKey(namespace)]), 2)
      return rows.map(([name, layout]) => queueIn(namespace, textIn(name), layoutIn(textIn(layout))!))
    }
    // The tags of all generations that an ordered queue has had, however many shards each had.
    const tagsOf = ({ name, layout, shards }: RedisQueue) =>
      layout.kind === 'plain'
        ? shards.map(({ tag }) => tag)
        : Array.from({ length: layout.generation + 2 }, (_, generation) =>
            queueIn(namespace, name, { ...layout, generation, shards: mostShards }).shards.map(({ tag }) => tag),
          ).flat()

    return {
      name,
      async open() {
        const store = new RedisStore({
          client: auditedClient(
            openRedisClient(address),
            namespace,
            () => now,
            () => infoOf(runs, now - startedAt),
          ),
          namespace,
          ...(mostClaimBytes === undefined ? {} : { mostClaimBytes }),
        })
        handles.push(store)
        return store
      },
      async advance(ms) {
        now += ms
      },
      async step(ms) {
        now += ms
      },
      async restart() {
        runs += 1
        startedAt = now
      },
      dump: async () => redisState(eyes, namespace, await queues(), now),
      async audit() {
        const keys = eyes.isCluster
          ? [...new Set((await queues()).flatMap(tagsOf).map((tag) => `${tag.slice(0, tag.indexOf('}') + 1)}:audit`))]
          : [`{${namespace}}:audit`]
        const lists = await Promise.all(keys.map(async (key) => listIn(await eyes.command('LRANGE', [key, '0', '-1']))))
        const entries = lists.flatMap(auditEntries)
        // Sorting is stable: entries of one shard stay in their order.
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

/** The INFO of a server that has been up for `upMs` in this run. */
function infoOf(run: number, upMs: number): string {
  return `run_id:${run.toString(16)}\r\nuptime_in_seconds:${Math.floor(upMs / 1_000)}\r\nsecond_repl_offset:-1\r\n`
}
