/** A damaged queue next to sound ones: claims leave it out and say so, and look at it again. */

import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { StoreCorruptError } from '#src/core/errors.js'
import { systemClock } from '#src/core/platform/clock.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { Store } from '#src/stores/contract/store.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { sharedRedis } from '../redis-scene.js'

const by = { worker: 'w', leaseMs: 30_000 }
const settingsOf = (name: string, more: Partial<QueueSettings> = {}): QueueSettings => ({
  ...{ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} },
  ...more,
})

const { server, client } = await sharedRedis()
let store: RedisStore
let namespace = 'd'
beforeEach(async () => {
  namespace += 'x'
  store = new RedisStore({ client, namespace })
  await store.open([settingsOf('a'), settingsOf('b'), settingsOf('c')])
})

function enqueue(queue: string, ...ids: string[]) {
  const jobs = ids.map((id) => ({ id, task: 'x', payload: '{}', priority: 0, rememberMs: 0 }))
  return store.enqueue([{ callId: `${queue}-${ids}`, queue, jobs }])
}

function claim(queues: readonly string[], own: Store = store) {
  return own.claim(
    queues.map((queue) => ({ queue, limit: 10 })),
    by,
  )
}

/** Lets the time pass after which a damaged queue is looked at again. */
function later() {
  const { mono } = systemClock
  const moved = vi.spyOn(systemClock, 'mono').mockImplementation(() => mono.call(systemClock) + 30_001)
  onTestFinished(() => void moved.mockRestore())
}

/** Script calls that the server was sent. */
async function calls() {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await server.ask('INFO', 'commandstats')))?.[1] ?? 0)
}

it('a queue with a foreign key does not block the others in the same call', async () => {
  await enqueue('c', '1', '2')
  await server.ask('SET', `{${namespace}:b}:ready`, 'theirs')
  const answer = await claim(['a', 'b', 'c'])
  expect(answer.claims.map(({ id }) => id)).toEqual(['1', '2'])
  expect(answer.damaged).toEqual([
    { queue: 'b', shard: 0, isWhole: true, error: expect.any(StoreCorruptError), forMs: expect.any(Number) },
  ])
  expect(answer.damaged![0]!.forMs / 30_000).toBeCloseTo(1, 1)
  expect(answer.damaged![0]!.error.message).toContain(`'{${namespace}:b}:ready' holds a string`)
})

it('a damaged queue is asked again only after a pause, then by itself, and reported until it is repaired', async () => {
  await server.ask('SET', `{${namespace}:b}:ready`, 'theirs')
  await claim(['a', 'b', 'c'])
  const before = await calls()
  const known = await claim(['a', 'b', 'c'])
  expect(known.damaged).toHaveLength(1)
  expect(known.isInDoubt).toBeUndefined()
  expect(await calls()).toBe(before + 1)
  later()
  // Of the three the damaged one is asked by itself: the others are not to be asked in vain with it.
  expect((await claim(['a', 'b', 'c'])).damaged![0]!.forMs / 30_000).toBeCloseTo(1, 1)
  expect(await calls()).toBe(before + 4)
  vi.restoreAllMocks()
  await server.ask('DEL', `{${namespace}:b}:ready`)
  await enqueue('b', '1')
  const left = await claim(['b'])
  expect([left.claims, left.damaged?.[0]?.isWhole]).toEqual([[], true])
  const fresh = new RedisStore({ client, namespace })
  const mended = await claim(['a', 'b'], fresh)
  expect([mended.claims.map(({ id }) => id), mended.damaged]).toEqual([['1'], undefined])
})

it('a repaired queue is claimed from again by the handle that found it damaged', async () => {
  await server.ask('SET', `{${namespace}:b}:ready`, 'theirs')
  await claim(['b'])
  await server.ask('DEL', `{${namespace}:b}:ready`)
  await enqueue('b', '1')
  later()
  const mended = await claim(['a', 'b', 'c'])
  expect([mended.claims.map(({ id }) => id), mended.damaged]).toEqual([['1'], undefined])
})

it('one damaged shard of several is left out, and the grants of the others are not lost', async () => {
  const ids = Array.from({ length: 20 }, (_, i) => `job-${i}`)
  await store.open([settingsOf('plain', { shards: 3 }), settingsOf('ordered', { kind: 'ordered', shards: 3 })])
  for (const [queue, tag] of [
    ['plain', 'plain:1'],
    ['ordered', 'ordered:0.1'],
  ] as const) {
    await enqueue(queue, ...ids)
    await server.ask('RENAME', `{${namespace}:${tag}}:claims`, `{${namespace}:${tag}}:aside`).catch(() => {})
    await server.ask('SET', `{${namespace}:${tag}}:leases`, 'theirs')
    const granted: string[] = []
    for (let answer = await claim([queue]); answer.claims.length > 0; answer = await claim([queue])) {
      granted.push(...answer.claims.map(({ id }) => id))
      expect(answer.damaged ?? []).toMatchObject(answer.damaged === undefined ? [] : [{ shard: 1, isWhole: false }])
    }
    const held = (await store.workers.held('w')).filter((one) => one.queue === queue).map(({ id }) => id)
    expect(new Set(granted).size).toBe(granted.length)
    expect(new Set([...granted, ...held]).size).toBeGreaterThan(8)
  }
})

it('a damaged queue wakes no waiter, and blocks no wait for others', async () => {
  await enqueue('b', '1')
  await server.ask('DEL', `{${namespace}:b}:line`)
  await server.ask('SET', `{${namespace}:b}:line`, 'theirs')
  await server.ask('DEL', `{${namespace}:b}:wake`)
  const signal = new AbortController().signal
  // Whoever has not asked it yet is sent to do so.
  expect(await store.wait(['a', 'b'], 1_000, signal)).toContain('b')
  await claim(['a', 'b'])
  expect(await store.wait(['a', 'b'], 50, signal)).toEqual([])
  const rung = store.wait(['a', 'b'], 10_000, signal)
  await enqueue('a', '2')
  expect(await rung).toEqual(['a'])
})

it('a foreign marker is reported like any other key', async () => {
  await server.ask('SET', `{${namespace}:b}:wake`, 'theirs')
  const signal = new AbortController().signal
  expect(await store.wait(['a', 'b'], 1_000, signal)).toEqual([])
  expect((await claim(['a', 'b'])).damaged?.[0]?.error.message).toContain(`'{${namespace}:b}:wake' holds a string`)
})

it('claims of a dead worker in other queues are found and ended all the same', async () => {
  await enqueue('a', '1')
  await claim(['a'])
  await server.ask('SET', `{${namespace}:b}:claims`, 'theirs')
  const held = await store.workers.held('w')
  expect(held.map(({ id }) => id)).toEqual(['1'])
  expect((await store.workers.gone(held, 'w')).crashed.map(({ id }) => id)).toEqual(['1'])
  await store.workers.remove('w')
})
