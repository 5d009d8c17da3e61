import { readdirSync, readFileSync } from 'node:fs'
import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '#src/store-testing/servers/free-port.js'
import type { FsckFinding, StoreHealth } from '#src/stores/contract/store-health.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { rightsOf, userLine } from '#src/stores/redis/health/redis-acl.js'
import { examineRedis } from '#src/stores/redis/health/redis-doctor.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { RedisQueues } from '#src/stores/redis/shards/redis-queues.js'
import { connect, queue, RedisScene, settings } from '../redis-scene.js'

let server: RedisServer
let client: RedisClient
beforeAll(async () => {
  server = await startRedis({ config: ['appendonly yes', 'maxmemory 100mb'] })
  client = connect(server)
})
afterAll(async () => {
  await client.close()
  await server.stop()
})

/** Without what is known of some versions of the server, whichever that is here. */
const told = (findings: readonly FsckFinding[]) => findings.filter(({ what }) => !what.startsWith('CVE-'))
const bad = (findings: readonly FsckFinding[]) => told(findings).filter(({ level }) => level !== 'ok')

/** Makes the user that the examination proposes, and says who it is. */
async function makeUser(health: StoreHealth, username: string) {
  const found = await health.examine()
  const line = /ACL SETUSER millrace .*$/.exec(found.find(({ what }) => what === 'least rights')!.text)![0]
  const [, , , ...rules] = line.replace('>PASSWORD', '>secret').split(' ')
  await server.ask('ACL', 'SETUSER', username, ...rules)
  return { username, password: 'secret' }
}

describe('the examination of a Redis store', () => {
  it('finds no fault in a sound server, and lists what it examined', async () => {
    const scene = await RedisScene.busy(client)
    const found = await scene.health.examine()

    expect(bad(found)).toEqual([])
    expect(told(found).map(({ what }) => what)).toEqual([
      'version',
      'uptime',
      'eviction policy',
      'memory',
      'persistence',
      'replication',
      'connections',
      'clock',
      'rights',
      'least rights',
    ])
    expect(found.find(({ what }) => what === 'persistence')!.text).toMatch(/appendfsync everysec/)
    expect(found.find(({ what }) => what === 'uptime')!.text).toMatch(/^up for \d/)
    expect(found.find(({ what }) => what === 'memory')!.text).toMatch(
      /in use \(\d+ %\), at most \d+\.\d MB since its start$/,
    )
  })

  it('reports the settings of the server as they are', async () => {
    const scene = new RedisScene(client, { replicas: 2 })
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru', 'timeout', 90, 'appendfsync', 'always')
    const found = await scene.health.examine()
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction', 'timeout', 0, 'appendfsync', 'everysec')

    expect(bad(found).map(({ level, what }) => `${level} ${what}`)).toEqual([
      'error eviction policy',
      'error replication',
      'warning connections',
    ])
    expect(found.find(({ what }) => what === 'persistence')!.text).toMatch(/appendfsync always/)
  })

  it('is a single error if the server evicts keys, refuses the password or is away', async () => {
    const { namespace } = new RedisScene(client)
    const found = async (own: RedisClient) => {
      const findings = await new RedisStore({ client: own, namespace }).health.examine()
      await own.close()
      return findings.map(({ level, what, text }) => `${level} ${what}: ${text}`)
    }
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    expect(await found(connect(server))).toEqual([expect.stringMatching(/^error server: the Redis at .*noeviction/)])
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    expect(await found(connect(server, { username: 'nobody', password: 'wrong' }))).toEqual([
      expect.stringMatching(/^error server: .*WRONGPASS.* Check the user and the password/),
    ])
    const gone = await freePort()
    expect(await found(openRedisClient(redisAddress(`redis://127.0.0.1:${gone}`)))).toEqual([
      expect.stringMatching(/^error server: .*cannot be reached: connect ECONNREFUSED/),
    ])
  })

  it('reports the difference of the clocks', async () => {
    const { namespace } = new RedisScene(client)
    const queues = new RedisQueues(client, namespace)
    const clock = { now: () => Date.now() + 3_600_000, mono: () => performance.now() }

    const found = await examineRedis({ client, queues, namespace, replicas: 0 }, clock)

    expect(found.find(({ what }) => what === 'clock')).toMatchObject({
      level: 'ok',
      text: expect.stringMatching(/^the server's is (?:1h|59m \d+s) behind/),
    })
  })

  it('proposes a user who can do all that the store does, only on its own namespace', async () => {
    const { namespace, health, queues } = new RedisScene(client)
    const own = connect(server, await makeUser(health, 'least'))
    const scene = new RedisScene(own, { namespace })
    const { store } = scene

    await store.open([settings])
    await scene.fill()
    const watched = store.records.watch([{ queue, id: 'line-1' }], 5_000, new AbortController().signal)
    const [claim] = await scene.take(1)
    await scene.end(claim!, { kind: 'complete' })
    for (let left = await scene.take(1); left.length > 0; left = await scene.take(1))
      await scene.end(left[0]!, { kind: 'complete' })
    await watched
    await store.workers.beat(
      { id: 'w', host: 'h', pid: 1, startedAt: 1, concurrency: 1, queues: [queue], running: 0 } as never,
      5_000,
    )
    await store.workers.list()
    await store.workers.remove('w')
    await store.records.pause(queue)
    await store.records.resume(queue)
    const rung = store.wait([queue], 5_000, new AbortController().signal)
    await scene.add({ id: 'wakes' })
    expect(await rung).toEqual([queue])
    expect(bad(await store.health.check())).toEqual([])
    // What else is asked than the settings of the server is answered.
    expect(bad(await store.health.examine())).toEqual([
      { level: 'warning', what: 'settings (CONFIG GET)', text: expect.stringMatching(/^could not be read \(.*NOPERM/) },
    ])
    for (const [command, ...args] of [
      ['GET', 'other'],
      ['HGET', queues.replace('scene', 'scene2'), 'f'],
      ['FLUSHALL'],
      ['KEYS', '*'],
    ])
      await expect(own.command(command!, args), command).rejects.toThrow(/NOPERM/)
    await own.close()
  })

  it('names the rights that a user lacks', async () => {
    const scene = await RedisScene.busy(client)
    const login = await makeUser(scene.health, 'lacking')
    await server.ask('ACL', 'SETUSER', login.username, '-hincrby', '-client|unblock', 'resetchannels')
    const own = connect(server, login)

    const found = bad(await new RedisStore({ client: own, namespace: scene.namespace }).health.examine())

    expect(found).toContainEqual({
      level: 'error',
      what: 'rights',
      text: expect.stringMatching(/may not run hincrby, client\|unblock, publish, subscribe(?:, unsubscribe)? on/),
    })
    await own.close()
  })

  it('continues if something cannot be queried, and says so', async () => {
    const { namespace } = new RedisScene(client)
    const deaf: RedisClient = {
      isCluster: false,
      run: async (script, keys, args) => {
        if (script.name === 'server-info') throw new Error('not today')
        return client.run(script, keys, args)
      },
      command: async (name, args) => {
        if (name === 'TIME') throw new Error('no time')
        return client.command(name, args)
      },
      pop: () => Promise.reject(new Error('not asked')),
      popAndRun: () => Promise.reject(new Error('not asked')),
      listen: () => Promise.reject(new Error('not asked')),
      reach: () => client.reach(),
      close: async () => {},
    }

    const found = await new RedisStore({ client: deaf, namespace }).health.examine()

    expect(found.map(({ level, what, text }) => `${level} ${what}: ${text.slice(0, 50)}`)).toEqual([
      'warning server (INFO): could not be read (not today).',
      'warning clock (TIME): could not be read (no time).',
      expect.stringMatching(/^ok rights: this user may run all \d+ commands/),
      expect.stringMatching(/^ok least rights: /),
    ])
  })

  it('knows every command that a script of the store runs', () => {
    const folder = new URL('../../../../src/stores/redis/', import.meta.url)
    const texts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /(?:script|scripts|lua|prelude)\.ts$/.test(file) || file.startsWith('lua/'))
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
    const used = texts.flatMap((text) =>
      [...text.matchAll(/(?:call|many|redis\.call)\('([A-Z]+)'(?:, '([A-Z]+)')?/g)].map(([, command]) =>
        command!.toLowerCase(),
      ),
    )
    const granted = new Set(
      [true, false].flatMap((isCluster) => rightsOf('ns', isCluster)).map(({ words }) => words[0]),
    )

    expect(new Set(used).size).toBeGreaterThan(25)
    expect([...new Set(used)].filter((command) => !granted.has(command))).toEqual([])
    expect(userLine('ns', true)).toContain('+spublish')
  })
})
