/** Plans of Postgres that were made among few jobs, by statistics of empty tables: what a call touches does not grow. */

import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
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
  const address = postgresAddress(await postgresStoreAddress())
  const store = new PostgresStore({ address })
  onTestFinished(() => store.close())
  await store.open([{ name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  const [{ host, port }] = address.hosts as [(typeof address.hosts)[0]]
  const client = new pg.Client(`postgres://postgres@${host}:${port}/postgres`)
  await client.connect()
  onTestFinished(() => client.end())
  const call = `SELECT ${address.schema}.${name}((SELECT qid FROM ${address.schema}.queue), ${values})`
  const enqueue = async (from: number, to: number) => {
    const some = Array.from({ length: to - from }, (__, n) => ({
      ...{ id: `job-${from + n}`, task: 't', payload: '{}', priority: 0, rememberMs: 0 },
    }))
    await store.enqueue([{ callId: `call-${from}`, queue: 'mail', jobs: some, hasNewIds: true }])
  }
  await client.query(`ANALYZE ${address.schema}.job, ${address.schema}.ended`)
  await enqueue(0, few)
  await client.query(call)
  await enqueue(few, jobs)

  const touched: number[] = []
  // A call may read the catalog beside: something was forgotten, or never looked up.
  for (let n = 0; n < 3; n += 1) {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${call}`)
    const plan = rows[0]['QUERY PLAN'][0].Plan
    touched.push(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'])
  }
  expect(Math.min(...touched)).toBeLessThan(mostBuffers)
})
