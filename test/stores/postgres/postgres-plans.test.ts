/** Plans of Postgres that were made among few jobs, by statistics of empty tables: what a call touches does not grow. */

import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresStoreAddress } from '../../worker-postgres.js'

/** More than a call about one job touches, and less than there is. */
const mostBuffers = 100
const [few, jobs] = [1_000, 8_000]

it.each([
  ['looking whether an id is taken', 'taken_1', `'{job-7}'`],
  ['choosing jobs by their ids for a change', 'select_1', `'{job-7}', false, '{0,1,2,5}', false, false, 10`],
])('%s reads that id alone, even by a plan made among few jobs', async (_, name, values) => {
  const { store, client, schema } = await scene()
  const call = `SELECT ${schema}.${name}((SELECT qid FROM ${schema}.queue), ${values})`
  const enqueue = async (from: number, to: number) => {
    const some = Array.from({ length: to - from }, (__, n) => ({
      ...{ id: `job-${from + n}`, task: 't', payload: '{}', priority: 0, rememberMs: 0 },
    }))
    await store.enqueue([{ callId: `call-${from}`, queue: 'mail', jobs: some, hasNewIds: true }])
  }
  await client.query(`ANALYZE ${schema}.job, ${schema}.ended`)
  await enqueue(0, few)
  await client.query(call)
  await enqueue(few, jobs)
  expect(await buffersOf(client, call)).toBeLessThan(mostBuffers)
})

it('a page of the ready jobs of a group reads those alone, however many other groups have', async () => {
  const { store, client, schema } = await scene()
  const enqueue = async (from: number, to: number) => {
    const some = Array.from({ length: to - from }, (__, n) => ({
      ...{ id: `job-${from + n}`, group: (from + n) % 500 === 7 ? 'acme' : `g${n % 40}`, task: 't', payload: '{}' },
      ...{ priority: 0, rememberMs: 0 },
    }))
    await store.enqueue([{ callId: `call-${from}`, queue: 'mail', jobs: some, hasNewIds: true }])
  }
  const call = `SELECT ${schema}.list_2(ARRAY(SELECT qid FROM ${schema}.queue), 'time', '{1}', NULL, 11, 'acme')`
  await client.query(`ANALYZE ${schema}.job, ${schema}.ended`)
  await enqueue(0, few)
  await client.query(call)
  await enqueue(few, jobs)
  const query = { state: 'ready', by: 'time', group: 'acme', limit: 10 } as const
  const { jobs: first, cursor } = await store.records.list('mail', query)
  expect(first.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `job-${n * 500 + 7}`))
  expect((await store.records.list('mail', { ...query, cursor: cursor! })).jobs).toHaveLength(6)
  // For each job of the page its row, and what it might have beside it.
  expect(await buffersOf(client, call)).toBeLessThan(20 * 11)
})

it.each([
  ['a ring', 'ring_2', '(SELECT qid FROM @.queue), false, false'],
  ['a look of a waiter', 'peek_2', 'ARRAY(SELECT qid FROM @.queue), false'],
])('%s reads one suspect, however many groups have some', async (_, name, values) => {
  const { client, schema } = await scene({ maxRunning: { perGroup: 1 } })
  const call = `SELECT ${schema}.${name}(${values.replace('@', `${schema}`)})`
  await client.query(`INSERT INTO ${schema}.job (qid, pool, stamp, created_ms, updated_ms, id, task, grp, payload)
    SELECT qid, 1, i, 1, 1, 'job-' || i, 't', 'g' || i, '{}' FROM ${schema}.queue, generate_series(1, ${few}) i`)
  // The lanes and limits of a queue take most of it.
  expect(await buffersOf(client, call)).toBeLessThan(2 * mostBuffers)
})

it.each([
  ['the backlog of deaths', 'death_backlog_1', '20'],
  ['a look at the oldest deaths of tasks', 'unreported_1', `'{task-1,task-2}', 20, '{2,5}'`],
])('%s reads those alone that it counts or gives, however many there are', async (_, name, values) => {
  const { client, schema } = await scene()
  const call = `SELECT ${schema}.${name}(ARRAY(SELECT qid FROM ${schema}.queue), ${values})`
  const die = (from: number, to: number) =>
    client.query(`INSERT INTO ${schema}.death (qid, id, task, attempt, crashes, died_ms, payload)
      SELECT qid, 'job-' || i, 'task-' || i % 3, 1, 0, i, repeat('x', 900) FROM ${schema}.queue, generate_series(${from + 1}, ${to}) i`)
  await client.query(`ANALYZE ${schema}.death`)
  await die(0, few)
  await client.query(call)
  await die(few, jobs)
  expect(await buffersOf(client, call)).toBeLessThan(mostBuffers)
})

/** A store with a queue, and a client beside it. */
async function scene(limits: Pick<QueueSettings, 'maxRunning'> = {}) {
  const address = postgresAddress(await postgresStoreAddress())
  const store = new PostgresStore({ address })
  onTestFinished(() => store.close())
  await store.open([{ name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...limits }])
  const [{ host, port }] = address.hosts as [(typeof address.hosts)[0]]
  const client = new pg.Client(`postgres://postgres@${host}:${port}/postgres`)
  await client.connect()
  onTestFinished(() => client.end())
  return { store, client, schema: address.schema }
}

/** How many pages of the server a call touches. */
async function buffersOf(client: pg.Client, call: string): Promise<number> {
  const touched: number[] = []
  // A call may read the catalog beside: something was forgotten, or never looked up.
  for (let n = 0; n < 3; n += 1) {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${call}`)
    const plan = rows[0]['QUERY PLAN'][0].Plan
    touched.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
  }
  return Math.min(...touched)
}
