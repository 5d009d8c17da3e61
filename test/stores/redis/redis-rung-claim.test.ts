/** Rung claims, which a Redis server makes by itself when a wait ends, because they were sent along with it. */

import { type RedisServer, startRedis } from 'millrace/store-testing'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import type { Rung } from '#src/stores/contract/claim.js'
import { textIn } from '#src/stores/redis/client/redis-reply.js'
import type { RedisStore } from '#src/stores/redis/redis-store.js'
import { connect, queue, RedisScene, settings } from './redis-scene.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 120_000)

let scene: RedisScene
beforeEach(async () => {
  scene = new RedisScene(connect(server))
  await scene.store.open([settings])
  // The server knows the script from the first claim on.
  await scene.take()
})
afterEach(() => scene.store.close())

const longMs = 20_000
const by = { worker: 'w', leaseMs: 30_000 }
const never = new AbortController().signal
const from = [{ queue, limit: 10 }]

const waitOn = (store: RedisStore, signal = never): Promise<Rung> => store.claimWhenRung(from, by, longMs, signal)
const idsIn = ({ claimed }: Rung) => claimed?.claims.map(({ id }) => id)

/** Resolves when this many connections block on the server. */
async function blocked(count = 1): Promise<void> {
  const clients = async () => String(await scene.client.command('INFO', ['clients']))
  await expect.poll(async () => /blocked_clients:(\d+)/.exec(await clients())?.[1]).toBe(String(count))
}

it('a claim with a wait is made at the moment of the ring', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  await scene.add({ id: 'a' })
  const ended = await waiting

  expect(ended.rung).toEqual([queue])
  expect(idsIn(ended)).toEqual(['a'])
  expect(ended.claimed).toMatchObject({ queue, more: false, crashed: [], buried: [] })
})

it('a claim with a wait is answered even if the wait is aborted', async () => {
  const abort = new AbortController()
  const waiting = waitOn(scene.store, abort.signal)
  await blocked()
  abort.abort()
  const ended = await waiting

  expect(ended.rung).toEqual([])
  expect(ended.claimed).toMatchObject({ claims: [], waits: [{ queue, reason: 'empty' }] })
})

it('a claim with a wait is sent once nobody else waits on the same handle: until then a ring is for all of them', async () => {
  const waiting = [scene.store.wait([queue], longMs, never), waitOn(scene.store)] as const
  await blocked()
  await scene.add({ id: 'a' })
  expect(await waiting[0]).toEqual([queue])

  await scene.add({ id: 'b' })
  expect(idsIn(await waiting[1])).toEqual(['a', 'b'])
})

it('a claim with a wait serves its own waiter even if another one arrives meanwhile', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  const other = scene.store.wait([queue], longMs, never)
  await scene.add({ id: 'a' })

  expect(idsIn(await waiting)).toEqual(['a'])
  await scene.add({ id: 'b' })
  expect(await other).toEqual([queue])
})

it('a claim with a wait ends when another waiter for other queues arrives', async () => {
  await scene.store.open([{ ...settings, name: 'other' }])
  const waiting = waitOn(scene.store)
  await blocked()
  const other = scene.store.wait(['other'], longMs, never)
  const ended = await waiting
  expect([ended.rung, idsIn(ended)]).toEqual([[], []])

  await blocked()
  await scene.store.records.resume('other')
  expect(await other).toEqual(['other'])
})

it('a claim with a wait is left to its caller if the server has lost its script', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  await scene.client.command('SCRIPT', ['FLUSH'])
  await scene.add({ id: 'a' })

  expect(await waiting).toEqual({ rung: [queue] })
  expect((await scene.take()).map(({ id }) => id)).toEqual(['a'])
})

it('a claim with a wait is left to its caller if the queue was throttled meanwhile', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  const throttle = { scope: 'slow', by: 'queue', rules: [{ limit: 1, windowMs: 60_000, moderate: false }] } as const
  await scene.store.open([{ ...settings, throttle }])
  await scene.add({ id: 'a' }, { id: 'b' })

  expect(await waiting).toEqual({ rung: [queue] })
})

it('a claim with a wait keeps a limit that was set meanwhile', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  await scene.store.open([{ ...settings, maxRunning: 1 }])
  await scene.add({ id: 'a' }, { id: 'b' })

  expect(idsIn(await waiting)).toEqual(['a'])
})

it('a claim is not sent with a wait on queues that need more than one call', async () => {
  await scene.store.open([
    { ...settings, name: 'wide', shards: 2 },
    { ...settings, name: 'ordered', kind: 'ordered', shards: 1 },
  ])
  for (const name of ['wide', 'ordered'])
    expect(await scene.store.claimWhenRung([{ queue: name, limit: 1 }], by, 20, never)).toEqual({ rung: [] })
})

it('a claim with a wait is doubtful if the connection is lost, but no job is', async () => {
  const waiting = waitOn(scene.store).catch((error: unknown) => error)
  await blocked()
  const clients = textIn(await scene.client.command('CLIENT', ['LIST']))
  const [, id] = /^id=(\d+) .*\bcmd=bzpopmin/m.exec(clients)!
  await scene.client.command('CLIENT', ['KILL', 'ID', id!])
  const error = await waiting

  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error).toMatchObject({ inDoubt: true })
  await scene.add({ id: 'a' })
  expect((await scene.take()).map(({ id: one }) => one)).toEqual(['a'])
})

it('a claim with a wait is left to its caller, who finds the damage, if the queue was damaged meanwhile', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  await scene.add({ id: 'a' })
  await waiting
  const again = waitOn(scene.store)
  await blocked()
  await scene.raw('DEL', 'claims')
  await scene.raw('SET', 'claims', 'foreign')
  await scene.add({ id: 'b' })

  expect(await again).toEqual({ rung: [queue] })
  expect(await scene.store.claim(from, by)).toMatchObject({ claims: [], damaged: [{ queue }] })
})

it("a claim with a wait is made even if the queue's marker is foreign, and removes it", async () => {
  await scene.raw('SET', 'wake', 'foreign')
  const { claimed } = await waitOn(scene.store)

  expect(claimed).toMatchObject({ claims: [] })
  expect(String(await scene.raw('TYPE', 'wake'))).toBe('none')
})

it('a claim with a wait is answered even if the store is closed', async () => {
  const waiting = waitOn(scene.store)
  await blocked()
  await scene.store.close()

  expect(await waiting).toMatchObject({ rung: [], claimed: { claims: [] } })
})
