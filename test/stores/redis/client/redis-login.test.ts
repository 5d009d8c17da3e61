/** Logins that change while a process lives: the user's `connect` is asked at each connection. */

import { setTimeout as pause } from 'node:timers/promises'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { defineTask } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { expect, it, onTestFinished } from 'vitest'
import { StoreRefusedError, StoreUnavailableError } from '#src/core/errors.js'
import type { RedisServer } from '#src/store-testing/servers/redis-server-process.js'
import type { ConnectRedis } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { nextEvent } from '../../../next-event.js'
import { testMillOn } from '../../../test-mill.js'

const username = 'ann'

/** Gives the user this password alone, and ends its connections. */
async function changed(servers: readonly RedisServer[], password: string): Promise<void> {
  for (const server of servers) {
    await server.ask('ACL', 'SETUSER', username, 'reset', 'on', `>${password}`, '~*', '&*', '+@all')
    await server.ask('CLIENT', 'KILL', 'USER', username)
  }
}

/** The servers of one store, whose user has the first password, and what the connector gives: `given.password`. */
async function scene(mode: 'single' | 'cluster') {
  const redis = await startRedis({ mode } as never)
  onTestFinished(() => redis.stop())
  const { servers } = redis
  await changed(servers, 'one')
  const given = { password: 'one', asked: 0, lazyConnect: true }
  const connect: ConnectRedis = () => {
    given.asked += 1
    const login = { username, password: given.password, lazyConnect: given.lazyConnect }
    if (mode === 'single')
      return new (Redis as unknown as new (options: RedisOptions) => Redis)({ port: servers[0]!.port, ...login })
    const nodes = servers.map(({ port }) => ({ host: '127.0.0.1', port }))
    return new Cluster(nodes, { lazyConnect: true, redisOptions: login })
  }
  const client = openRedisClient(connect)
  onTestFinished(() => client.close())
  return { servers, given, client }
}

/** Repeats the call while the store is away. */
async function onceThere<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      await pause(20)
    }
  }
}

it.each(['single', 'cluster'] as const)('a %s server gets the current login', { timeout: 60_000 }, async (mode) => {
  const { servers, given, client } = await scene(mode)
  await client.command('SET', ['{a}', '1'])
  await changed(servers, 'two')
  given.password = 'two'

  expect(String(await onceThere(() => client.command('GET', ['{a}'])))).toBe('1')
})

it('a later connection asks for the current login', async () => {
  const { servers, given, client } = await scene('single')
  await client.command('PING', [])
  await changed(servers, 'two')
  given.password = 'two'
  const heard: unknown[] = []
  const stop = await onceThere(() => client.listen('news', (message) => heard.push(message)))
  await onceThere(() => client.pop(['bell'], 1, new AbortController().signal))

  await servers[0]!.ask('PUBLISH', 'news', 'one')
  while (heard.length === 0) await pause(10)
  stop()
})

it('if the connector returns the old login for a while, the store is away until it returns the new one', {
  timeout: 30_000,
}, async () => {
  const { servers, given, client } = await scene('single')
  await client.command('PING', [])
  await changed(servers, 'two')

  const error = await client.command('PING', []).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(StoreUnavailableError)
  given.password = 'two'
  expect(String(await onceThere(() => client.command('PING', [])))).toBe('PONG')
})

it('a login that has never worked is refused at once', async () => {
  const { given, client } = await scene('single')
  given.password = 'wrong'

  await expect(client.command('PING', [])).rejects.toBeInstanceOf(StoreRefusedError)
})

it('if the connector throws, the previous login is used', async () => {
  const { servers, given, client } = await scene('single')
  await client.command('PING', [])
  Object.defineProperty(given, 'password', {
    get() {
      throw new Error('no token now')
    },
  })
  await servers[0]!.ask('CLIENT', 'KILL', 'USER', username)

  expect(String(await onceThere(() => client.command('PING', [])))).toBe('PONG')
})

it('a connector whose clients connect by themselves leaves no connection behind', async () => {
  const { servers, given, client } = await scene('single')
  await client.command('PING', [])
  given.lazyConnect = false
  for (let i = 0; i < 5; i += 1) {
    await servers[0]!.ask('CLIENT', 'KILL', 'USER', username)
    await onceThere(() => client.command('PING', []))
  }

  const list = String(await servers[0]!.ask('CLIENT', 'LIST')).split('\n')
  expect(list.filter((line) => line.includes(`user=${username}`)).length).toBeLessThanOrEqual(2)
})

it('a worker goes on when its login changes, after a while without the new one', { timeout: 30_000 }, async () => {
  const { servers, given, client } = await scene('single')
  const store = new RedisStore({ client })
  const task = defineTask({ name: 'greet', run: (name: string) => name })
  const mill = testMillOn(store, { tasks: [task] })
  const worker = mill.worker()
  await worker.start()
  const away = nextEvent(mill, 'store.failed')
  await changed(servers, 'two')
  await away
  given.password = 'two'

  const done = nextEvent(mill, 'job.completed')
  await onceThere(() => mill.enqueue(task, 'Ada'))
  expect(await done).toMatchObject({ task: 'greet' })
  await worker.stop()
})
