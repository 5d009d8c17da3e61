/** The connection where the servers change under it: slots that move on a cluster, masters that die behind Sentinels. */

import { setTimeout as pause } from 'node:timers/promises'
import { startRedis } from 'millrace/store-testing'
import { afterEach, expect, it } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { redisScript } from '#src/stores/redis/client/redis-script.js'

const never = new AbortController().signal
const count = redisScript('count', "return redis.call('INCR', KEYS[1])")
const withinMs = 20_000

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

function open(url: string): RedisClient {
  const client = openRedisClient(redisAddress(url))
  ends.push(() => client.close())
  return client
}

async function startCluster() {
  const cluster = await startRedis({ mode: 'cluster' })
  ends.push(() => cluster.stop())
  const slot = Number(await cluster.servers[0]!.ask('CLUSTER', 'KEYSLOT', '{t}'))
  const from = await cluster.masterOf(slot)
  const to = cluster.servers.find((server) => server !== from)!
  return { cluster, slot, from, to, client: open(cluster.url) }
}

async function startSentinel() {
  const redis = await startRedis({ mode: 'sentinel' })
  ends.push(() => redis.stop())
  return { redis, client: open(redis.url) }
}

it('while a slot moves no call is lost and none is carried out twice', { timeout: 60_000 }, async () => {
  const { cluster, slot, from, to, client } = await startCluster()
  for (let i = 0; i < 50; i += 1) await client.command('SET', [`{t}:${i}`, 'x'])
  let isMoving = true
  const counting = (async () => {
    let answered = 0
    for (; isMoving; answered += 1) expect(await client.run(count, ['{t}:n'], [])).toBe(answered + 1)
    return answered
  })()
  for await (const _ of cluster.moveSlot(slot, from, to, { batch: 5 })) await pause(10)
  isMoving = false
  const answered = await counting
  expect(answered).toBeGreaterThan(10)
  expect(await client.run(count, ['{t}:n'], [])).toBe(answered + 1)
  expect(await to.ask('GET', '{t}:n')).toBe(String(answered + 1))
})

it('a listener keeps receiving after its slot has moved, and learns of the gap', { timeout: 60_000 }, async () => {
  const { cluster, slot, from, to, client } = await startCluster()
  const heard: (string | undefined)[] = []
  await client.listen('{t}:bell', (message) => heard.push(message))
  await from.ask('SPUBLISH', '{t}:bell', 'before')
  await poll(async () => heard.at(-1), { what: 'the first message', withinMs })
  for await (const _ of cluster.moveSlot(slot, from, to)) await pause(1)
  await poll(async () => (heard.includes(undefined) ? true : undefined), { what: 'word of the gap', withinMs })
  await to.ask('SPUBLISH', '{t}:bell', 'after')
  await poll(async () => (heard.includes('after') ? true : undefined), { what: 'the second message', withinMs })
  expect(heard[0]).toBe('before')
})

it('after its master dies behind Sentinels calls go on, also pop and listeners', { timeout: 60_000 }, async () => {
  const { redis, client } = await startSentinel()
  const heard: (string | undefined)[] = []
  await client.run(count, ['n'], [])
  await client.listen('news', (message) => heard.push(message))
  const popping = client.pop(['bell'], 40_000, never)
  const old = await redis.master()
  await poll(async () => (String(await old.ask('CLIENT', 'LIST')).includes('cmd=bzpopmin') ? true : undefined), {
    what: 'the blocking command',
    withinMs,
  })
  await old.kill()
  const master = await redis.masterAfter(old)
  expect(await poll(() => client.run(count, ['m'], []), { what: 'a call to the new master', withinMs: 5_000 })).toBe(1)
  await poll(async () => (heard.includes(undefined) ? true : undefined), { what: 'word of the gap', withinMs })
  await master.ask('PUBLISH', 'news', 'after')
  await poll(async () => (heard.includes('after') ? true : undefined), { what: 'the message', withinMs })
  await master.ask('ZADD', 'bell', 0, '0')
  expect(await popping).toBe('bell')
})

it('a database missing on the master behind Sentinels is refused, and nothing is written anywhere', async () => {
  const { redis } = await startSentinel()
  const client = open(`${redis.url}?db=99`)
  for (const call of [() => client.run(count, ['n'], []), () => client.pop(['bell'], 100, never)]) {
    const error = await call().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'config-invalid', message: expect.stringContaining('has no database 99') })
  }
  const master = await redis.master()
  expect(await master.ask('DBSIZE')).toBe(0)
})
