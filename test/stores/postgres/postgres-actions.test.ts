/** Actions of operators on a Postgres store, while others claim and act. */

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresDatabase } from '../../worker-postgres.js'

let url: string
const closing: { close(): Promise<void> }[] = []

beforeAll(async () => {
  url = await postgresDatabase()
}, 60_000)
afterAll(async () => {
  for (const one of closing) await one.close()
})

async function storeIn(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore({ address: { ...postgresAddress(url), schema } })
  closing.push(store)
  await store.open([{ name: 'mail', kind: 'plain', order: 'fifo' }])
  const jobs = ['a', 'b'].map((id) => ({ id, task: 'send', payload: '{}', priority: 0, rememberMs: 0 }))
  await store.enqueue([{ callId: 'c', queue: 'mail', jobs }])
  return store
}

async function connected(): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  closing.push({ close: () => client.end() })
  return client
}

/** Resolves once the store has called this function of the schema again, because it could not change what a client has locked. */
async function passedOver(client: pg.Client, schema: string, call = 'select_1'): Promise<void> {
  const looks = 'SELECT query_start::text AS at FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1'
  const seen = new Set<string>()
  while (seen.size < 2) {
    // A transaction sees what it saw first.
    await client.query('SELECT pg_stat_clear_snapshot()')
    for (const { at } of (await client.query<{ at: string }>(looks, [`%${schema}%.${call}(%`])).rows) seen.add(at)
  }
}

describe('an action on jobs of a Postgres store', () => {
  it('asks a job to end that has begun between its look and its change', async () => {
    const store = await storeIn('actions_begun')
    const client = await connected()
    await client.query('BEGIN')
    await client.query(`SELECT FROM actions_begun.job WHERE id = 'a' FOR UPDATE`)
    const cancelled = store.records.cancel('mail', { ids: ['a'] })
    await passedOver(client, 'actions_begun')
    // What a claim does.
    await client.query(`INSERT INTO actions_begun.bunch (fence, lease_ms, lo, hi, qid, n, lo_rank, hi_rank, pool, alone, worker)
      SELECT 77, actions_begun.us() / 1000 + 60000, stamp, stamp, qid, 1, 0, 0, 0, false, 'w' FROM actions_begun.job WHERE id = 'a'`)
    await client.query(`UPDATE actions_begun.job SET fence = 77 WHERE id = 'a'`)
    await client.query('COMMIT')

    expect(await cancelled).toEqual({ changed: 1, more: false })
    expect(await store.extend([{ queue: 'mail', id: 'a', fence: 77, leaseMs: 60_000 }])).toEqual(['cancel'])
  })

  it('changes the other jobs if one has ended meanwhile', async () => {
    const store = await storeIn('actions_ended')
    const client = await connected()
    await client.query('BEGIN')
    await client.query(`DELETE FROM actions_ended.job WHERE id = 'a'`)
    const buried = store.records.bury('mail', 'all')
    await passedOver(client, 'actions_ended')
    await client.query('COMMIT')

    expect(await buried).toEqual({ changed: 1, more: false })
    expect((await store.records.get('mail', 'b'))?.state).toBe('dead')
  })

  it('gives a locked job its new place once it is free, and the others at once', async () => {
    const store = await storeIn('actions_placed')
    const client = await connected()
    await client.query('BEGIN')
    await client.query(`SELECT FROM actions_placed.job WHERE id = 'a' FOR UPDATE`)
    const placed = store.records.reschedule('mail', ['a', 'b'], { priority: 4 })
    await passedOver(client, 'actions_placed', 'place_1')
    expect((await store.records.get('mail', 'b'))?.priority).toBe(4)
    expect((await store.records.get('mail', 'a'))?.priority).toBe(0)
    await client.query('COMMIT')

    expect(await placed).toBe(2)
    expect((await store.records.get('mail', 'a'))?.priority).toBe(4)
  })

  it('says that a job has no new place because somebody has locked it for too long', async () => {
    const store = await storeIn('actions_locked')
    const client = await connected()
    await client.query('BEGIN')
    await client.query(`SELECT FROM actions_locked.job WHERE id = 'a' FOR UPDATE`)

    await expect(store.records.reschedule('mail', ['a'], { delayMs: 5_000 })).rejects.toMatchObject({
      ...{ code: 'store-unavailable', message: expect.stringMatching(/^job 'a' of queue 'mail' is ended in a trans/) },
    })
    await client.query('ROLLBACK')
    expect((await store.records.get('mail', 'a'))?.state).toBe('ready')
  })
})
