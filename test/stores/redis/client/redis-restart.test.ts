/** Servers that were really started anew, or took over from another, and what becomes of leases that ended meanwhile. */

import { type RedisServer, startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect, type Login, queue, RedisScene, settings } from '../redis-scene.js'

async function started(...config: string[]): Promise<RedisServer> {
  const server = await startRedis({ config })
  onTestFinished(() => server.stop())
  return server
}

async function opened(server: RedisServer, login: Partial<Login> = {}, namespace?: string): Promise<RedisScene> {
  const scene = new RedisScene(connect(server, login), namespace === undefined ? {} : { namespace })
  onTestFinished(() => scene.store.close())
  await scene.store.open([settings])
  return scene
}

/** Whose leases a claim with this lease finds ended, and after how long it is worth asking again. */
async function found({ store }: RedisScene, leaseMs: number) {
  const { crashed, waits } = await store.claim([{ queue, limit: 0 }], { worker: 'finder', leaseMs })
  return { crashed: crashed.map(({ id }) => id), forMs: waits.find(({ reason }) => reason !== 'suspect')?.forMs }
}

async function upForMs(server: RedisServer): Promise<number> {
  const [, seconds] = /uptime_in_seconds:(\d+)/.exec(String(await server.ask('INFO', 'server')))!
  return Number(seconds) * 1_000
}

describe('expired leases', () => {
  it('are spared for one lease after a restart of the server with its data', async () => {
    const server = await started('appendonly yes', 'appendfsync always')
    const scene = await opened(server)
    await scene.add({ id: 'a' })
    const [claim] = await scene.take(1, 1)
    await server.restart()
    await scene.client.command('PING', [])

    const { crashed, forMs } = await found(scene, 600_000)

    expect(crashed).toEqual([])
    expect(forMs).toBeGreaterThan(600_000 - (await upForMs(server)) - 2_000)
    expect(forMs).toBeLessThanOrEqual(600_000)
    expect(await scene.store.extend([{ queue, id: 'a', fence: claim!.fence, leaseMs: 600_000 }])).toEqual(['ok'])
  })

  it.each(['plain', 'ordered'] as const)('wake nobody in a %s queue while they are spared', async (kind) => {
    const server = await started('appendonly yes', 'appendfsync always')
    const { store } = await opened(server)
    const [name, never] = [`${kind}-queue`, new AbortController().signal]
    await store.open([{ ...settings, name, kind }])
    const job = { id: 'a', task: 'send', payload: '1', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: 'call', queue: name, jobs: [job] }])
    const from = [{ queue: name, limit: 1 }]
    await store.claim(from, { worker: 'survivor', leaseMs: 1 })
    await server.restart()

    const { crashed, waits, more } = await store.claim(from, { worker: 'finder', leaseMs: 600_000 })
    expect([crashed, more, waits[0]?.lead]).toEqual([[], false, true])
    expect(await store.wait([name], 300, never)).toEqual([])
  })

  it('end as crashes once the server has been up for that lease', async () => {
    const server = await started('appendonly yes', 'appendfsync always')
    const scene = await opened(server)
    await scene.add({ id: 'a' })
    await scene.take(1, 1)
    await server.restart()

    // A lease that has gone by since the start, in whole seconds.
    await expect.poll(() => upForMs(server), { timeout: 10_000 }).toBeGreaterThanOrEqual(1_000)
    expect(await found(scene, 1_000)).toMatchObject({ crashed: ['a'] })
  })

  it('are spared from now on by a replica that became the master, however long it has been up', async () => {
    const master = await started()
    const replica = await started(`replicaof ${master.host} ${master.port}`)
    const before = await opened(master)
    await before.add({ id: 'a' })
    await before.take(1, 1)
    await expect.poll(() => found(before, 0)).toMatchObject({ crashed: ['a'] })
    await before.take(1, 1)
    await before.add({ id: 'b' })
    await before.take(1, 1)
    await expect.poll(() => replica.ask('HEXISTS', before.key('claims'), 'b'), { timeout: 10_000 }).toBe(1)
    await expect.poll(() => upForMs(replica), { timeout: 10_000 }).toBeGreaterThanOrEqual(2_000)
    await replica.ask('REPLICAOF', 'NO', 'ONE')
    const after = await opened(replica, {}, before.namespace)

    const { crashed, forMs } = await found(after, 2_000)

    expect(crashed).toEqual([])
    expect(forMs).toBeGreaterThan(1_500)
    // Known by now: it is counted from then on.
    expect((await found(after, 600_000)).forMs).toBeLessThanOrEqual(2_000)
  })

  it('are spared again by a master that was a replica in between', async () => {
    const server = await started()
    const other = await started()
    const scene = await opened(server)
    await scene.add({ id: 'a' })
    await scene.take(1, 1)
    await expect.poll(() => upForMs(server), { timeout: 10_000 }).toBeGreaterThanOrEqual(1_000)
    expect(await found(scene, 0)).toMatchObject({ crashed: ['a'] })
    await server.ask('REPLICAOF', other.host, String(other.port))
    await server.ask('REPLICAOF', 'NO', 'ONE')
    await scene.add({ id: 'b' })
    await scene.take(1, 1)

    expect(await found(scene, 600_000)).toMatchObject({ crashed: [] })
  })

  it("end at once for a user without permission to read the server's run id", async () => {
    const server = await started()
    await server.ask('ACL', 'SETUSER', 'blind', 'on', '>secret', '~*', '&*', '+@all')
    const scene = await opened(server, { username: 'blind', password: 'secret' })
    await server.ask('ACL', 'SETUSER', 'blind', '-info')
    await scene.add({ id: 'a' })
    await scene.take(1, 0)

    expect(await found(scene, 600_000)).toMatchObject({ crashed: ['a'] })
  })
})
