/** The fault proxy before a real server: each fault does what it says, and no other thing. */

import { once } from 'node:events'
import { connect } from 'node:net'
import { type FaultProxy, faultProxy, type RedisServer, startRedis } from 'millrace/store-testing'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { poll } from '#src/store-testing/servers/poll.js'
import { RespClient } from '#src/store-testing/servers/resp-client.js'

/** Where no server is installed the first start unpacks one. */
const firstStartMs = 120_000

let server: RedisServer
let proxy: FaultProxy
beforeAll(async () => {
  server = await startRedis()
}, firstStartMs)
afterAll(() => server?.stop())
beforeEach(async () => {
  await server.ask('FLUSHALL')
  proxy = await faultProxy(server)
})
afterEach(() => proxy.close())

function connected(timeoutMs?: number): RespClient {
  const client = new RespClient(proxy.port, proxy.host, timeoutMs)
  onTestFinished(() => client.close())
  return client
}

/** Clients that the server sees, without the one that asks. */
async function clients(): Promise<number> {
  return ((await server.ask('CLIENT', 'LIST', 'TYPE', 'normal')) as string).trimEnd().split('\n').length - 1
}

const gone = () =>
  poll(async () => ((await clients()) === 0 ? true : undefined), { what: 'no client', withinMs: 5_000 })

test('without a fault all bytes pass, of any amount', async () => {
  const client = connected()
  const large = 'x'.repeat(5_000_000)
  expect(await client.call('SET', 'large', large)).toBe('OK')
  expect((await client.call('GET', 'large')) === large).toBe(true)
  expect(proxy.connections).toBe(1)
  client.close()
  await gone()
  const forgotten = async () => (proxy.connections === 0 ? true : undefined)
  await poll(forgotten, { what: 'the connection should be forgotten', withinMs: 5_000 })
})

test('cut resets all connections on both sides, and new ones pass', async () => {
  const client = connected()
  await client.call('PING')
  const waiting = client.call('BLPOP', 'list', 0)
  proxy.cut()
  await expect(waiting).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(proxy.connections).toBe(0)
  await gone()
  expect(await connected().call('PING')).toBe('PONG')
})

test('refuse rejects new connections and keeps existing ones', async () => {
  const client = connected()
  await client.call('PING')
  await proxy.inject('refuse')
  await expect(connected().call('PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect(await client.call('PING')).toBe('PONG')
  await proxy.inject('none')
  expect(await connected().call('PING')).toBe('PONG')
})

test('a black hole accepts, answers nothing, and delivers late what was sent into it', async () => {
  const client = connected()
  await client.call('PING')
  await proxy.inject('blackHole')
  const late = client.call('INCR', 'n')
  await expect(connected(200).call('PING')).rejects.toThrow('was silent for 200 ms')
  expect(await server.ask('GET', 'n')).toBeNull()
  await proxy.inject('none')
  expect(await late).toBe(1)
})

test.for(['end', 'resetAndDestroy'] as const)(
  'a black hole hides the %s of a connection until it is over',
  async (leave) => {
    const socket = connect(proxy.port, proxy.host).on('error', () => {})
    socket.write('PING\r\n')
    await once(socket, 'data')
    await proxy.inject('blackHole')
    const closed = leave === 'resetAndDestroy' && once(socket, 'close')
    socket[leave]()
    await closed
    // Whoever comes after it has been heard, too.
    await expect(connected(200).call('PING')).rejects.toThrow('was silent')
    expect(await clients()).toBe(2)
    await proxy.inject('none')
    await gone()
    socket.destroy()
  },
)

test('dropped replies: the server has run the command, and no later answer takes its place', async () => {
  const client = connected(300)
  await client.call('PING')
  await proxy.inject('dropReplies')
  const lost = proxy.replyLost()
  const deaf = expect(client.call('INCR', 'n')).rejects.toThrow('was silent for 300 ms')
  await lost
  expect(await server.ask('GET', 'n')).toBe('1')
  await proxy.inject('none')
  const later = expect(client.call('PING')).rejects.toThrow('was silent for 300 ms')
  await Promise.all([deaf, later])
  expect(await connected().call('GET', 'n')).toBe('1')
})

test('a connection that lost a reply still sees its own end', async () => {
  const client = connected()
  await client.call('PING')
  await proxy.inject('dropReplies')
  const lost = proxy.replyLost()
  const answer = expect(client.call('INCR', 'n')).rejects.toThrow(/closed|ECONNRESET/)
  await lost
  await server.ask('CLIENT', 'KILL', 'TYPE', 'normal')
  await answer
})

test('latency is added in both directions and keeps the order', async () => {
  const client = connected()
  await client.call('PING')
  proxy.latencyMs = 40
  const startedAt = performance.now()
  const replies = await Promise.all([client.call('INCR', 'n'), client.call('INCR', 'n'), client.call('INCR', 'n')])
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(80)
  expect(replies).toEqual([1, 2, 3])
})

test('split sends all bytes one by one', async () => {
  proxy.split = true
  const socket = connect({ port: proxy.port, host: proxy.host, noDelay: true })
  onTestFinished(() => void socket.destroy())
  const chunks: string[] = []
  const text = 'the quick brown fox jumps'
  socket.write(`ECHO "${text}"\r\n`)
  const whole = `$${text.length}\r\n${text}\r\n`
  while (chunks.join('').length < whole.length) chunks.push(String((await once(socket, 'data'))[0]))
  expect(chunks.join('')).toBe(whole)
  // Two may meet on their way.
  expect(chunks.length).toBeGreaterThan(whole.length / 2)
})

test('an absent server ends the connection', async () => {
  const nobody = await startRedis()
  await nobody.stop()
  const before = await faultProxy(nobody)
  onTestFinished(() => before.close())
  const client = new RespClient(before.port)
  await expect(client.call('PING')).rejects.toThrow(/closed|ECONNRESET/)
})
