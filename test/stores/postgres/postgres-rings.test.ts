/** Rings on a Postgres store: whom one reaches while rows of waiters are left that nobody listens for. */

import pg from 'pg'
import { expect, it, onTestFinished, vi } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresStoreAddress } from '../../worker-postgres.js'

const mail = { name: 'mail', kind: 'plain', order: 'fifo' } as const
const job = { id: 'a', task: 'send', payload: '{}', priority: 0, rememberMs: 0 }

async function scene(options = '') {
  const address = postgresAddress((await postgresStoreAddress()) + options)
  const store = new PostgresStore({ address })
  onTestFinished(() => store.close())
  await store.open([mail])
  const [{ host, port }] = address.hosts as [(typeof address.hosts)[0]]
  const admin = new pg.Client(`postgres://postgres@${host}:${port}/postgres`)
  await admin.connect()
  onTestFinished(() => admin.end())
  const table = `${address.schema}.waiter`
  const channels = async () => {
    const { rows } = await admin.query(`SELECT channel FROM ${table} ORDER BY at_us`)
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
  const leave = (channel: string, atUs: string, backend: string) =>
    admin.query(
      `INSERT INTO ${table} (qid, channel, at_us, backend) SELECT qid, '${channel}', ${atUs}, ${backend} FROM ${address.schema}.queue`,
    )
  return { address, store, admin, channels, waiter, leave }
}

/** Larger than the number of any process. */
const noBackend = '2147483647'

it('a ring passes over the rows that a dead process has left, and they go', async () => {
  const { store, admin, channels, waiter, leave } = await scene()
  const { waiting, channel, rings } = await waiter()
  await leave('left-first', '0', noBackend)
  await leave('left-last', '9000000000000000', noBackend)
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
  expect(await channels()).not.toContain('left-last')
})

it("a ring in a user's transaction passes over them, too", async () => {
  const { store, admin, waiter, leave } = await scene()
  const { waiting, channel, rings } = await waiter()
  await leave('left-last', '9000000000000000', noBackend)
  await admin.query('BEGIN')
  await store.transactions.enqueue(admin, { queue: 'mail', jobs: [job] })
  await admin.query('COMMIT')

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
})

it('a ring goes to the waiter that was the last to say so, as the rows of a dead host look like those of others', async () => {
  const { store, admin, waiter, leave } = await scene()
  await leave('left-first', '0', 'pg_backend_pid()')
  const { waiting, channel, rings } = await waiter()
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await waiting).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings).toEqual([channel])
})

it('a process says anew with each wait that it waits, though its row is still there', async () => {
  const { store, admin, channels, waiter, leave } = await scene()
  const { channel, rings } = await waiter()
  await leave('left-meanwhile', '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint', 'pg_backend_pid()')
  const again = store.wait(['mail'], 60_000, new AbortController().signal)
  await vi.waitFor(async () => expect(await channels()).toEqual(['left-meanwhile', channel]))
  await store.enqueue([{ callId: 'call-1', queue: 'mail', jobs: [job] }])

  expect(await again).toEqual(['mail'])
  await admin.query('SELECT 1')
  expect(rings[0]).toBe(channel)
})

it('a process that hears nothing leaves no row, so that it takes no ring from others', async () => {
  const { address, store, admin, channels } = await scene('&listen=none')
  const waiting = store.wait(['mail'], 60_000, new AbortController().signal)
  const looks = `SELECT FROM pg_stat_activity WHERE query LIKE '%"${address.schema}".peek\\_1%' AND pid <> pg_backend_pid()`
  await vi.waitFor(async () => expect((await admin.query(looks)).rowCount).toBe(1))
  // Who is closed takes no row away.
  await store.close()

  expect(await waiting).toEqual([])
  expect(await channels()).toEqual([])
})
