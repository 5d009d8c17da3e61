/**
 * The raw limit: what Postgres does if one statement carries 250 jobs and a job is deleted when it is taken. It has no leases, so
 * it runs a job at most once; no ids, no priorities, no counts and no other process that waits.
 */

import pg from 'pg'
import type { Contender, OpenContender } from '../contenders/contender.js'

const perCall = 250
const schema = `CREATE TABLE IF NOT EXISTS raw_job (
  seq bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE, due timestamptz NOT NULL DEFAULT now(), payload text NOT NULL);
CREATE INDEX IF NOT EXISTS raw_job_due ON raw_job (due, seq)`
const add = 'INSERT INTO raw_job (payload) SELECT * FROM unnest($1::text[])'
const take = `DELETE FROM raw_job WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM raw_job ORDER BY due, seq LIMIT ${perCall} FOR UPDATE SKIP LOCKED)) RETURNING payload`

export const open: OpenContender = async (url): Promise<Contender> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(schema)
  const enqueueMany = (inputs: readonly unknown[]) => client.query(add, [inputs.map((input) => JSON.stringify(input))])
  let working = Promise.resolve()
  return {
    enqueue: (input) => enqueueMany([input]),
    enqueueMany,
    async work({ started, completed }) {
      working = (async () => {
        for (;;) {
          const { rows } = await client.query<{ payload: string }>(take)
          if (rows.length === 0) return
          for (const { payload } of rows) started(JSON.parse(payload))
          for (const _ of rows) completed()
        }
      })()
    },
    async close() {
      await working
      await client.end()
    },
  }
}
