/** Real servers: what `startRedis` starts, and that nothing of it stays behind. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { RespError, startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { RespClient } from '#src/store-testing/servers/resp-client.js'

/** Where no server is installed the first start unpacks one. */
const firstStartMs = 120_000
const withinMs = 20_000

beforeAll(async () => (await startRedis()).stop(), firstStartMs)

async function startSingle(...config: string[]) {
  const server = await startRedis({ config })
  onTestFinished(() => server.stop())
  return server
}

describe('a single server', () => {
  test('writes nothing to disk by default', async () => {
    const server = await startSingle()
    await server.ask('SET', 'a', 1)
    // An orderly end is when a server with any save point would write.
    await server.kill('SIGTERM')
    await server.restart()
    expect(await server.ask('GET', 'a')).toBeNull()
  })

  test('keeps its port, its configuration and its stored data over a kill and a restart', async () => {
    const server = await startSingle('appendonly yes', 'appendfsync always', 'maxmemory 3mb')
    const { pid, url } = server
    await server.ask('SET', 'a', 'é')
    await server.kill()
    expect(server.isRunning).toBe(false)
    await expect(server.ask('PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await server.restart()
    expect(server.pid).not.toBe(pid)
    expect(server.url).toBe(url)
    expect(await server.ask('GET', 'a')).toBe('é')
    expect(await server.ask('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', String(3 * 1024 * 1024)])
  })

  test('is silent while it is stopped and goes on when it is continued', async () => {
    const server = await startSingle()
    await server.kill('SIGSTOP')
    const impatient = new RespClient(server.port, server.host, 200)
    await expect(impatient.call('PING')).rejects.toThrow('was silent for 200 ms')
    const patient = server.ask('PING')
    await server.kill('SIGCONT')
    expect(await patient).toBe('PONG')
  })

  test('answers a refused command with its own error', async () => {
    const server = await startSingle()
    await expect(server.ask('INCR')).rejects.toThrow(RespError)
    const client = new RespClient(server.port)
    onTestFinished(() => client.close())
    const replies = await Promise.allSettled([
      client.call('SET', 'a', 'x'),
      client.call('INCR', 'a'),
      client.call('TIME'),
    ])
    expect(replies.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('can require a password', async () => {
    const server = await startSingle('requirepass secret')
    await expect(server.ask('PING')).rejects.toThrow('NOAUTH')
  })

  test('that fails to start is reported with its own words', async () => {
    await expect(startSingle('nonsense yes')).rejects.toThrow(/has ended.*nonsense/s)
  })

  test('is gone with its data after a stop, and cannot start again', async () => {
    const server = await startSingle()
    await Promise.all([server.stop(), server.stop()])
    expect(() => process.kill(server.pid, 0)).toThrow('ESRCH')
    expect(existsSync(server.directory)).toBe(false)
    await expect(server.restart()).rejects.toThrow('was stopped')
  })
})

describe('a program that starts a server', () => {
  /** A program of its own, and the words that it prints. */
  function program(code: string) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const line = once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>
    return { child, words: line.then(([text]) => text.split(' ')) }
  }

  test('takes the server and its data along when it is killed with -9', async () => {
    const { child, words } = program(`
      import { startRedis } from 'millrace/store-testing'
      const { port, directory } = await startRedis()
      console.log(port, directory)`)
    const [port, directory] = await words
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    expect(existsSync(directory!)).toBe(true)
    const closed = once(socket, 'close')
    child.kill('SIGKILL')
    await closed
    await poll(async () => (existsSync(directory!) ? undefined : true), { what: 'its data should go', withinMs: 5_000 })
  })

  test('exits by itself after it has stopped and closed everything', async () => {
    const { child, words } = program(`
      import { faultProxy, startRedis } from 'millrace/store-testing'
      import { connect } from 'node:net'
      import { once } from 'node:events'
      const server = await startRedis()
      await server.restart()
      const proxy = await faultProxy(server)
      const socket = connect(proxy.port, '127.0.0.1').on('error', () => {})
      socket.write('PING\\r\\n')
      await once(socket, 'data')
      proxy.latencyMs = 3_600_000
      await new Promise((resolve) => socket.write('PING\\r\\n', resolve))
      // It is there by now; the proxy reads it in the next turns of the event loop.
      for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve))
      await proxy.close()
      await proxy.close()
      await server.stop()
      console.log('done')`)
    const ended = once(child, 'exit')
    expect(await words).toEqual(['done'])
    expect(await ended).toEqual([0, null])
  })
})

describe('a cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>
  const startCluster = () => startRedis({ mode: 'cluster', replicas: 1 })
  beforeAll(async () => {
    cluster = await startCluster()
  }, firstStartMs)
  afterAll(() => cluster?.stop())

  test('has three masters with a replica each, which share all slots', async () => {
    expect(cluster.url).toBe(`redis+cluster://${cluster.servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`)
    const roles = await Promise.all(cluster.servers.map(async (server) => ((await server.ask('ROLE')) as string[])[0]))
    expect(roles).toEqual(['master', 'master', 'master', 'slave', 'slave', 'slave'])
    const owners = await Promise.all([0, 5_461, 5_462, 10_923, 10_924, 16_383].map((slot) => cluster.masterOf(slot)))
    expect(owners.map((owner) => cluster.servers.indexOf(owner))).toEqual([0, 0, 1, 1, 2, 2])
    for (const server of cluster.servers) expect(await server.ask('CLUSTER', 'INFO')).toContain('cluster_state:ok')
  })

  test('moves a slot step by step: half-way it redirects moved keys, and another call moves the rest', async () => {
    const [source, target] = [cluster.servers[2]!, cluster.servers[0]!]
    const keys = Array.from({ length: 25 }, (_, i) => `{foo}:${i}`)
    const slot = (await source.ask('CLUSTER', 'KEYSLOT', keys[0]!)) as number
    expect(await cluster.masterOf(slot)).toBe(source)
    for (const key of keys) await source.ask('SET', key, key)

    for await (const moved of cluster.moveSlot(slot, source, target)) if (moved > 0) break
    expect(await target.ask('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(10)
    const found = await Promise.allSettled(keys.map((key) => source.ask('GET', key)))
    const asks = found.filter((one) => one.status === 'rejected').map(({ reason }) => reason.message)
    expect(asks).toEqual(Array.from({ length: 10 }, () => `ASK ${slot} 127.0.0.1:${target.port}`))

    const steps: number[] = []
    for await (const moved of cluster.moveSlot(slot, source, target)) steps.push(moved)
    expect(steps).toEqual([0, 10, 15])
    await expect(source.ask('GET', keys[0]!)).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${target.port}`)
    for (const key of keys) expect(await target.ask('GET', key)).toBe(key)
    expect(await cluster.masterOf(slot)).toBe(target)
  })

  test('gives the slots of a killed master to its replica', async () => {
    const [, master, , , replica] = cluster.servers
    await master!.kill()
    const taken = async () => ((await cluster.masterOf(6_000)) === replica ? true : undefined)
    await poll(taken, { what: 'the replica should take over', withinMs })
  })
})

test('Sentinels name the replica after the master was killed', async () => {
  const redis = await startRedis({ mode: 'sentinel', config: ['appendonly yes'] })
  onTestFinished(() => redis.stop())
  const [master, replica] = redis.servers
  expect(redis.url).toBe(
    `redis+sentinel://${redis.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/mymaster`,
  )
  expect(await redis.master()).toBe(master)
  expect(await redis.replicas()).toEqual([replica])
  const client = new RespClient(master!.port)
  await client.call('SET', 'a', 1)
  expect(await client.call('WAIT', 1, 5_000)).toBe(1)

  await master!.kill()
  expect(await redis.masterAfter(master!)).toBe(replica)
  expect(await redis.master()).toBe(replica)
  expect(await replica!.ask('INCR', 'a')).toBe(2)
  expect(await redis.replicas()).toEqual([])
}, 60_000)

test('no server is left if they start but cannot form a cluster', async () => {
  const running = () => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length
  const before = running()
  await expect(startRedis({ mode: 'cluster', config: ['rename-command CLUSTER ""'] })).rejects.toThrow('CLUSTER')
  expect(running()).toBe(before)
})
