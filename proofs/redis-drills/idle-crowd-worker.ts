/** A process of the idle crowd: stores that claim, settle and wait, as workers do, and tell how many of them rest. */

import { setTimeout as delay } from 'node:timers/promises'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { type CrowdWord, crowdQueue } from './idle-crowd.js'

const [url = '', handles = '1'] = process.argv.slice(2)
const say = (word: CrowdWord) => process.send?.(word)
const names = [crowdQueue.name]
/** The look with which a wait begins has been answered by then. */
const lookedMs = 500

let resting = 0

async function work(store: RedisStore, worker: string): Promise<void> {
  for (;;) {
    const { claims } = await store.claim([{ queue: crowdQueue.name, limit: 10 }], { worker, leaseMs: 30_000 })
    for (const { queue, id, fence } of claims) {
      await store.settle([{ queue, id, fence, kind: 'complete' }])
      say({ settled: id })
    }
    if (claims.length > 0) continue
    const rested = store.wait(names, 600_000, new AbortController().signal)
    const isOver = await Promise.race([rested.then(() => true), delay(lookedMs).then(() => false)])
    if (isOver) continue
    resting += 1
    await rested
    resting -= 1
  }
}

process.on('message', () => say({ resting }))
for (let i = 0; i < Number(handles); i += 1) {
  const store = new RedisStore({ client: openRedisClient(redisAddress(url)), namespace: 'crowd' })
  // One after the other: all at once would be late for their connections on a busy machine.
  await store.depth(names)
  await store.wait(names, 1, new AbortController().signal)
  void work(store, `${process.pid}-${i}`)
}
