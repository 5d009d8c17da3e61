/** The store on a server in trouble: emptied under it, without memory, with keys that are not its own. */

import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { StoreCorruptError, StoreFullError } from '#src/core/errors.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'

const settings = (name: string): QueueSettings => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} })
const by = { worker: 'w', leaseMs: 5_000 }

let server: RedisServer
let store: RedisStore
beforeEach(async () => {
  server = await startRedis()
  store = open()
  await store.open([settings('a'), settings('b')])
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()))
  await server.stop()
})

const opened: RedisStore[] = []
function open(): RedisStore {
  const made = new RedisStore({ client: openRedisClient(redisAddress(server.url)), namespace: 't' })
  opened.push(made)
  return made
}

function enqueue(id: string, queue = 'a', payload = '{}') {
  return store.enqueue([{ callId: id, queue, jobs: [{ id, task: 'x', payload, priority: 0, rememberMs: 0 }] }])
}

it('after a flush all calls under way find their queue created again', async () => {
  await enqueue('before')
  const { claims } = await store.claim([{ queue: 'a', limit: 1 }], by)
  await server.ask('FLUSHALL')
  const ids = Array.from({ length: 50 }, (_, i) => `job-${i}`)
  // In turns of their own: some while others make the queue anew.
  const answers = await Promise.all(
    ids.map(async (id, i) => {
      for (let turn = 0; turn < i; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      return enqueue(id)
    }),
  )
  expect(new Set(answers.flat(2))).toEqual(new Set(['added']))
  const [{ queue, id, fence }] = claims as [(typeof claims)[0]]
  expect(await store.settle([{ queue, id, fence, kind: 'complete' }])).toEqual(['gone'])
})

it('without memory queues are opened, counted, listed and waited for, and only new jobs are refused', async () => {
  await enqueue('one')
  const { claims } = await store.claim([{ queue: 'a', limit: 1 }], by)
  await server.ask('CONFIG', 'SET', 'maxmemory', 1)
  await expect(enqueue('two')).rejects.toBeInstanceOf(StoreFullError)
  const other = open()
  expect(await other.open([settings('a')])).toHaveLength(1)
  expect((await other.depth(['a'])).depths[0]).toMatchObject({ running: 1 })
  expect(await other.records.get('a', 'one')).toMatchObject({ state: 'running' })
  expect(await other.workers.held('w')).toHaveLength(1)
  expect(await other.wait(['a'], 50, new AbortController().signal)).toEqual([])
  const [{ queue, id, fence }] = claims as [(typeof claims)[0]]
  expect(await other.settle([{ queue, id, fence, kind: 'release', delayMs: 0 }])).toEqual(['ok'])
  expect(await other.wait(['a'], 1_000, new AbortController().signal)).toEqual(['a'])
})

it.each([
  [
    'claims',
    { of: 'b', key: 'ready' },
    async () => {
      const from = ['a', 'b'].map((queue) => ({ queue, limit: 1 }))
      throw (await store.claim(from, by)).damaged![0]!.error
    },
  ],
  ['enqueues', { of: 'a', key: 'jobs' }, () => enqueue('one')],
  ['counts', { of: 'a', key: 'claims' }, () => store.depth(['a'])],
])('%s that meet a foreign key name it and its queue', async (_, { of, key }, meet) => {
  await server.ask('SET', `{t:${of}}:${key}`, 'theirs')
  const error = (await meet().catch((error: unknown) => error)) as Error
  expect(error).toBeInstanceOf(StoreCorruptError)
  expect(error.message).toContain(`queue '${of}'`)
  expect(error.message).toContain(`'{t:${of}}:${key}' holds a string`)
  expect(await server.ask('GET', `{t:${of}}:${key}`)).toBe('theirs')
})
