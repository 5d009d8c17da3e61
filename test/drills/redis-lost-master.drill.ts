/** A lost master of a cluster: its queues stand still, and nobody else's. */

import { type ClusterServers, startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'

const names = Array.from({ length: 9 }, (_, i) => `queue-${i}`)
const by = { worker: 'w1', leaseMs: 30_000 }
let redis: ClusterServers
let store: RedisStore

beforeAll(async () => {
  redis = await startRedis({ mode: 'cluster', config: ['cluster-require-full-coverage no'] })
}, 120_000)

/** One job in each queue; then the master of the first queue is killed. Resolves with the queues that are left. */
async function losingAMaster(): Promise<string[]> {
  store = new RedisStore({ client: openRedisClient(redisAddress(redis.url)), namespace: 'lost' })
  onTestFinished(() => store.close())
  await store.open(names.map((name) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} })))
  const job = { task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
  await store.enqueue(names.map((queue) => ({ callId: queue, queue, jobs: [{ ...job, id: queue }] })))
  const [lost] = redis.servers
  await lost!.kill('SIGKILL')
  const asked = await Promise.allSettled(names.map((name) => store.depth([name])))
  return names.filter((_, i) => asked[i]!.status === 'fulfilled')
}

describe('a cluster that has lost a master', () => {
  it('still hands out the jobs of all other queues, in any order of the claim, and wakes their waiters', async () => {
    const left = await losingAMaster()
    expect(left.length).toBeGreaterThan(0)
    expect(left.length).toBeLessThan(names.length)
    const lost = names.filter((name) => !left.includes(name))

    const given: string[] = []
    for (const queue of left) {
      const asked = [lost[0]!, queue].map((name) => ({ queue: name, limit: 1 }))
      given.push(...(await store.claim(asked, by)).claims.map(({ id }) => id))
    }
    expect(given).toEqual(left)

    // Found empty and quiet, as an idle worker finds them.
    const served = [lost[0]!, ...left]
    const from = served.map((queue) => ({ queue, limit: 1 }))
    await store.claim(from, by)
    expect(await store.wait(served, 200, new AbortController().signal)).toEqual([])
    expect((await store.claim(from, by)).claims).toEqual([])

    const rung = store.wait(served, 10_000, new AbortController().signal)
    const job = { id: 'next', task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: 'next', queue: left[0]!, jobs: [job] }])
    expect(await rung).toContain(left[0])
    expect((await store.claim(from, by)).claims.map(({ id }) => id)).toEqual(['next'])
  }, 120_000)
})
