import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'

let primary: PostgresServer
let standby: PostgresServer
const stores: PostgresStore[] = []

beforeAll(async () => {
  primary = await PostgresServer.start()
  standby = await PostgresServer.start({ standbyOf: primary })
}, 60_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  await Promise.all([primary.stop(), standby.stop()])
})

async function storeOnBoth(): Promise<PostgresStore> {
  const url = primary.url.replace(`:${primary.port}/`, `:${primary.port},${standby.host}:${standby.port}/`)
  const store = new PostgresStore({ address: { ...postgresAddress(url), schema: 'pair' } })
  stores.push(store)
  await store.open([{ name: 'mail', kind: 'plain', order: 'fifo' }])
  return store
}

async function asked({ url }: PostgresServer, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const claim = (store: PostgresStore, worker: string) =>
  store.claim([{ queue: 'mail', limit: 1 }], { worker, leaseMs: 30_000 })

describe('a failover to a standby that has run for longer than a lease', () => {
  it('leaves a lease that ended meanwhile to its holder, for as long as one lasts', async () => {
    const holder = await storeOnBoth()
    const jobs = [{ id: 'a', task: 'send', payload: '{}', priority: 0, rememberMs: 0 }]
    await holder.enqueue([{ callId: 'call-1', queue: 'mail', jobs }])
    // A clock that runs ahead of the server's by what the table says.
    await asked(
      primary,
      `CREATE TABLE pair.ahead (us bigint); INSERT INTO pair.ahead VALUES (0);
       CREATE OR REPLACE FUNCTION pair.us() RETURNS bigint LANGUAGE sql VOLATILE AS
       'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT us FROM pair.ahead)'`,
    )
    const { fence } = (await claim(holder, 'holder')).claims[0]!
    await expect
      .poll(() => asked(standby, 'SELECT fence::int8 FROM pair.bunch'), { timeout: 10_000 })
      .toEqual([{ fence: String(fence) }])
    await primary.kill()
    await asked(standby, 'SELECT pg_promote()')
    await asked(standby, 'UPDATE pair.ahead SET us = 60000000')
    const other = await storeOnBoth()

    expect(await claim(other, 'other')).toMatchObject({ claims: [], crashed: [] })
    expect(await holder.extend([{ queue: 'mail', id: 'a', fence, leaseMs: 30_000 }])).toEqual(['ok'])
  }, 60_000)
})
