/** The depth of a queue that is resharded meanwhile. */

import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { ScriptRefusal } from '#src/stores/redis/client/redis-script.js'
import { depthsOf } from '#src/stores/redis/records/redis-depth.js'
import { queueIn } from '#src/stores/redis/redis-layout.js'
import { type RedisQueues, ShardMoved } from '#src/stores/redis/shards/redis-queues.js'

it('a shard that moves during a look makes it fail, and no rejection stays unhandled', async () => {
  const unheard: unknown[] = []
  const hear = (error: unknown) => void unheard.push(error)
  process.on('unhandledRejection', hear)
  onTestFinished(() => void process.off('unhandledRejection', hear))
  const queue = queueIn('millrace', 'orders', { kind: 'ordered', shards: 2, generation: 0, towards: 3 })
  queue.closed.add(queue.shards[0]!.tag)
  const moved = new ShardMoved('a shard has moved')
  const queues = {
    findNow: async () => [queue],
    run: async () => Promise.reject(moved),
    // The closed shard answers after the others have failed.
    ask: async () => {
      for (let turn = 0; turn < 5; turn += 1) await setImmediate()
      throw new ScriptRefusal('unknown')
    },
  }

  await expect(depthsOf(queues as unknown as RedisQueues, ['orders'])).rejects.toBe(moved)

  for (let turn = 0; turn < 10; turn += 1) await setImmediate()
  expect(unheard).toEqual([])
})
