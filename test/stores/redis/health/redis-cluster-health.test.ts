import { type ClusterServers, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FsckFinding } from '#src/stores/contract/store-health.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { connectCluster, RedisScene, settings } from '../redis-scene.js'

let cluster: ClusterServers
let client: RedisClient
beforeAll(async () => {
  cluster = await startRedis({ mode: 'cluster', config: ['appendonly yes', 'cluster-require-full-coverage no'] })
  client = connectCluster(cluster)
}, 60_000)
afterAll(async () => {
  await client.close()
  await cluster.stop()
})

/** Without what is known of some versions of the server, whichever that is here. */
const bad = (findings: readonly FsckFinding[]) =>
  findings.filter(({ level, what }) => level !== 'ok' && !what.startsWith('CVE-'))

describe('the health of a Redis store on a cluster', () => {
  it('examines every master that holds a shard, and checks all shards', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([{ ...settings, shards: 12 }])
    await scene.add(...Array.from({ length: 100 }, (_, i) => ({ id: `job-${i}` })))
    const found = await scene.health.examine()

    expect(bad(found)).toEqual([])
    expect(found.find(({ what }) => what === 'shards')!.text).toMatch(/^12 on 3 of 3 masters, \d+ \+ \d+ \+ \d+$/)
    expect(found.find(({ what }) => what === 'least rights')!.text).toContain('+ssubscribe')
    expect(await scene.health.check()).toEqual([
      { level: 'ok', what: 'queue mail', text: '100 jobs, everything in its place' },
    ])
  })

  it('names the master with a fault, and finds foreign keys on each', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([{ ...settings, shards: 12 }])
    const [, , last] = cluster.servers
    await last!.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    const foreign = Array.from({ length: 12 }, (_, i) => `{${scene.namespace}:mail:${i}}:foreign`)
    for (const key of foreign) await client.command('SET', [key, 'x'])

    const examined = bad(await scene.health.examine())
    const checked = bad(await scene.health.check())
    await last!.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')

    expect(examined.map(({ level, what }) => `${level} ${what}`)).toEqual([
      `error eviction policy (port ${last!.port})`,
    ])
    expect(checked).toEqual([
      { level: 'warning', what: 'unknown keys', text: expect.stringMatching(/foreign and 7 more\./) },
    ])
  })

  it('proposes a user who can do what the store does', async () => {
    const { namespace, health } = new RedisScene(client)
    const { text } = (await health.examine()).find(({ what }) => what === 'least rights')!
    const [, , , ...rules] = /ACL SETUSER millrace .*$/.exec(text)![0].replace('>PASSWORD', '>secret').split(' ')
    await Promise.all(cluster.servers.map((server) => server.ask('ACL', 'SETUSER', 'least', ...rules)))
    const own = connectCluster(cluster, { username: 'least', password: 'secret' })
    const scene = new RedisScene(own, { namespace })

    await scene.store.open([settings])
    await scene.fill()
    expect(bad(await scene.health.check())).toEqual([])
    expect(bad(await scene.health.examine()).map(({ what }) => what)).toEqual(['settings (CONFIG GET)'])
    await own.close()
  })

  it('reports unserved slots as an error', async () => {
    const scene = new RedisScene(client)
    await Promise.all(cluster.servers.map((server) => server.ask('CLUSTER', 'DELSLOTS', 0)))
    const found = await scene.health.examine()
    const owner = cluster.servers[0]!
    await owner.ask('CLUSTER', 'ADDSLOTS', 0)

    expect(found.find(({ what }) => what === 'cluster')).toMatchObject({
      level: 'error',
      text: expect.stringMatching(/16383 of 16384 slots served/),
    })
  })
})
