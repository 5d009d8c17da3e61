/** Rings on a Postgres store: whom one reaches while rows of waiters are left that nobody listens for. */

import type pg from 'pg'
import { expect, it, onTestFinished, vi } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresStoreAddress, testClient } from '../../worker-postgres.js'

const mail = { name: 'mail', kind: 'plain', order: 'fifo' } as const
const job = { id: 'a', task: 'send', payload: '{}', priority: 0, rememberMs: 0 }

async function scene(options = '') {
  const address = postgresAddress((await postgresStoreAddress()) + options)
  const store = new PostgresStore({ address })
  onTestFinished(() => store.close())
  await store.open([mail])
  const admin = await testClient()
  const table = `${address.schema}.waiter`
  const channels = async () => {
    const { rows } = await admin.query(`SELECT channel FROM ${table} ORDER BY n`)
    return rows.map(({ channel }: { channel: string }) => channel)
  }
  /** Who waits until the end of the test, and hears of each ring that it receives. */
  const waiter = async () => {
    const over = new AbortController()
    const waiting = store.wait(['mail'], 60_000, over.signal)
    onTestFinished(() => over.abort())
    const channel = await vi.waitFor(async () => {
      const [last] = (await channels()).slice(-1)
      expect(last).toMatch(/^millrace_/)
      return last!
    })
    const rings: string[] = []
    admin.on('notification', (ring) => rings.push(ring.channel))
    await admin.query(`LISTEN "${channel}"`)
    return { waiting, channel, rings }
  }
  const leave = (channel: string, backend: string) =>
    admin.query(
      `INSERT INTO ${table} (qid, channel, backend) SELECT qid, '${channel}', ${backend} FROM ${address.schema}.queue`,
    )
  /** Says that a channel waits, as a process does; resolves with the number that it has now. */
  const begins = async (client: pg.Client, channel: string, before = 0) => {
    const { rows } = await client.query(
      `SELECT ${address.schema}.wait_1(ARRAY[qid], '${channel}', NULL, ARRAY[${before}]::bigint[]) AS made FROM ${address.schema}.queue`,
    )
    return Number(rows[0].made[0])
  }
  const comesAndGoes = async (times: number) => {
    let n = 0
    for (let i = 0; i < times; i += 1) n = await begins(admin, 'quick', n)
    await admin.query(
      `SELECT ${address.schema}.wait_over_1(ARRAY[qid], 'quick', ARRAY[${n}]::bigint[]) FROM ${address.schema}.queue`,
    )
  }
  const floor = async () => {
    const { rows } = await admin.query(`SELECT max(waiter_floor) AS floor FROM ${address.schema}.queue_state`)
    return Number(rows[0].floor)
  }
  return { address, store, admin, channels, waiter, leave, begins, comesAndGoes, floor }
}

/** Larger than the number of any process. */
const noBackend = '2147483647'

it('a ring passes over the rows that a dead process has left, and they go', async () => {
  const { store, admin, channels, waiter, leave } = await scene()
  await leave('left-first', noBackend)
  const { waiting, channel, rings } = await waiter()
  await leave('left-last', noBackend)
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
  expect(await channels()).not.toContain('left-last')
})

it("a ring in a user's transaction passes over them, too", async () => {
  const { store, admin, waiter, leave } = await scene()
  const { waiting, channel, rings } = await waiter()
  await leave('left-last', noBackend)
  await admin.query('BEGIN')
  await store.transactions.enqueue(admin, { queue: 'mail', jobs: [job] })
  await admin.query('COMMIT')

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
})

it('a ring goes to the waiter that was the last to say so, as the rows of a dead host look like those of others', async () => {
  const { store, admin, waiter, leave } = await scene()
  await leave('left-first', 'pg_backend_pid()')
  const { waiting, channel, rings } = await waiter()
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
})

it('a process says anew with each wait that it waits, though its row is still there', async () => {
  const { store, admin, channels, waiter, leave } = await scene()
  const { channel, rings } = await waiter()
  await leave('left-meanwhile', 'pg_backend_pid()')
  const again = store.wait(['mail'], 60_000, new AbortController().signal)
  await vi.waitFor(async () => expect(await channels()).toEqual(['left-meanwhile', channel]))
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await again).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings[0]).toBe(channel)
})

/** More than begin to wait before a floor rises. */
const many = 60

it('a process that has waited for long is rung, however many have begun to wait since and have gone', async () => {
  const { store, admin, waiter, comesAndGoes, floor } = await scene()
  const { waiting, channel, rings } = await waiter()
  const before = await floor()
  await comesAndGoes(many)
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
  await comesAndGoes(many)
  expect(await floor()).toBeGreaterThan(before + many)
})

it('a process that begins to wait slowly is rung, however many are quicker', async () => {
  const { store, begins, comesAndGoes } = await scene()
  const slow = await testClient()
  const rings: string[] = []
  slow.on('notification', (ring) => rings.push(ring.channel))
  await slow.query('LISTEN slow; BEGIN')
  await begins(slow, 'slow')
  await comesAndGoes(many)
  await slow.query('COMMIT')
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  await vi.waitFor(() => expect(rings).toEqual(['slow']))
})

it('a process that hears nothing leaves no row, so that it takes no ring from others', async () => {
  const { address, store, admin, channels } = await scene('&listen=none')
  const waiting = store.wait(['mail'], 60_000, new AbortController().signal)
  const looks = `SELECT FROM pg_stat_activity WHERE query LIKE '%"${address.schema}".peek\\_2%' AND pid <> pg_backend_pid()`
  await vi.waitFor(async () => expect((await admin.query(looks)).rowCount).toBe(1))
  // Who is closed takes no row away.
  await store.close()

  expect(await waiting).toEqual([])
  expect(await channels()).toEqual([])
})
