/** Roles whose settings were chosen for another program: what a session of the store is like under them. */

import { defineOrderedTask, defineTask, many, millrace } from 'millrace'
import pg from 'pg'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresConnection } from '#src/stores/postgres/client/postgres-connection.js'
import type { PostgresClient } from '#src/stores/postgres/client/postgres-driver.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { workerPostgres } from '../../worker-postgres.js'

let made = 0
let admin: pg.Client

beforeAll(async () => {
  admin = new pg.Client((await workerPostgres()).url)
  await admin.connect()
  return () => admin.end()
}, 60_000)

/** The address of a role with these settings, in a schema of its own. */
async function addressOf(settings: Readonly<Record<string, string>>) {
  made += 1
  const role = `settled_${process.pid}_${made}`
  await admin.query(`CREATE ROLE ${role} LOGIN; GRANT CREATE ON DATABASE postgres TO ${role}`)
  for (const [name, value] of Object.entries(settings)) await admin.query(`ALTER ROLE ${role} SET ${name} = ${value}`)
  const { url } = await workerPostgres()
  return { role, url: url.replace('postgres@', `${role}@`), schema: role }
}

/** A client whose server process is another than the one that was announced, as behind a pooler. */
class PooledClient extends pg.Client {
  get processID(): number {
    return 1
  }
  // The driver writes what the server announces.
  set processID(_: number | null) {}
}
const pooled = (config: pg.ClientConfig) => new PooledClient(config) as PostgresClient

async function connectionOf(settings: Readonly<Record<string, string>>, makeClient?: typeof pooled) {
  const { url, role } = await addressOf(settings)
  const connection = new PostgresConnection(postgresAddress(url), 'jobs', makeClient)
  onTestFinished(() => connection.close())
  const shown = async (name: string) => (await connection.query('SELECT current_setting($1)', [name]))[0]![0]
  return { connection, shown, role }
}

const hostile = {
  default_transaction_isolation: "'repeatable read'",
  ...{ array_nulls: 'off', 'plpgsql.extra_errors': "'all'", exit_on_error: 'on', standard_conforming_strings: 'off' },
  // The first statement of a session still has the bound of the role.
  ...{ statement_timeout: "'1s'", lock_timeout: "'1ms'", idle_session_timeout: "'300ms'" },
  ...{ bytea_output: 'escape', extra_float_digits: '-15', datestyle: "'SQL, DMY'", timezone: "'Asia/Kathmandu'" },
  ...{ intervalstyle: 'sql_standard', quote_all_identifiers: 'on', transform_null_equals: 'on' },
}

describe('a session of a role with settings of its own', () => {
  it.each([
    ['default_transaction_isolation', 'serializable', 'read committed'],
    ['array_nulls', 'off', 'on'],
    ['plpgsql.extra_errors', 'all', 'none'],
    ['statement_timeout', '5s', '0'],
    ['lock_timeout', '2ms', '0'],
    ['idle_session_timeout', '5min', '0'],
    ['exit_on_error', 'on', 'off'],
    ['search_path', 'public', 'pg_catalog, pg_temp'],
  ])('has %s not as %s, but as %s', async (name, given, needed) => {
    const { shown } = await connectionOf({ [name]: `'${given}'` })
    expect(await shown(name)).toBe(needed)
  })

  it('is left as it is behind a pooler, which would lend it to others', async () => {
    const { shown } = await connectionOf({ search_path: 'public', statement_timeout: "'3s'" }, pooled)
    expect([await shown('search_path'), await shown('statement_timeout')]).toEqual(['public', '3s'])
  })

  it.each([
    ['default_transaction_isolation', 'repeatable read', 'read committed'],
    ['array_nulls', 'off', 'on'],
  ])('is refused behind a pooler if %s is %s, and the error says what to run', async (name, given, needed) => {
    const { shown, role } = await connectionOf({ [name]: `'${given}'` }, pooled)
    await expect(shown(name)).rejects.toMatchObject({
      code: 'store-refused',
      message: expect.stringContaining(`ALTER ROLE "${role}" SET ${name} = '${needed}'`),
    })
  })

  it('makes the schema behind a pooler however short statement_timeout is', async () => {
    const { url, schema } = await addressOf({ statement_timeout: "'40ms'" })
    const store = new PostgresStore({ address: { ...postgresAddress(url), schema }, makeClient: pooled })
    onTestFinished(() => store.close())
    await expect(store.open([{ name: 'mail', kind: 'plain', order: 'fifo' }])).resolves.toHaveLength(1)
  })

  it('names statement_timeout behind a pooler if that ends a call', async () => {
    const { connection } = await connectionOf({ statement_timeout: "'50ms'" }, pooled)
    await expect(connection.query('SELECT pg_sleep(9)')).rejects.toThrow(
      "'statement_timeout' is too short for the role",
    )
  })

  it('that begins transactions read-only is not in doubt, and the error names the setting', async () => {
    const { shown } = await connectionOf({ default_transaction_read_only: 'on' })
    await expect(shown('timezone')).rejects.toMatchObject({
      ...{ code: 'store-unavailable', inDoubt: false },
      message: expect.stringContaining("'default_transaction_read_only' is on"),
    })
  })
})

it('a database whose encoding lacks letters is refused, and the error says which to make', async () => {
  const { url } = await workerPostgres()
  const database = `latin_${process.pid}`
  await admin.query(`CREATE DATABASE ${database} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`)
  const connection = new PostgresConnection(postgresAddress(new URL(database, url).href), 'jobs')
  onTestFinished(() => connection.close())

  await expect(connection.query('SELECT 1')).rejects.toMatchObject({
    ...{
      code: 'config-invalid',
      message: expect.stringMatching(/encoding LATIN1.*CREATE DATABASE jobs ENCODING 'UTF8'/),
    },
  })
})

it('transactions that are repeatable by default pass no bound of a queue', async () => {
  const { url, schema } = await addressOf({ default_transaction_isolation: "'repeatable read'" })
  const stores = Array.from({ length: 6 }, () => new PostgresStore({ address: { ...postgresAddress(url), schema } }))
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
  await stores[0]!.open([{ name: 'mail', kind: 'plain', order: 'fifo', maxPending: 20 }])
  const jobOf = (id: string) => ({ id, task: 'send', payload: '{}', priority: 0, rememberMs: 0 })
  const calls = stores.flatMap((store, i) =>
    Array.from({ length: 10 }, (_, k) =>
      store.enqueue([{ callId: `${i} ${k}`, queue: 'mail', jobs: [jobOf(`${i} ${k}`)] }]),
    ),
  )
  await Promise.allSettled(calls)

  expect((await stores[0]!.depth(['mail'])).depths).toMatchObject([{ ready: 20 }])
})

it('a mill works through its jobs as a role whose settings are all unusual', async () => {
  const { url, schema: namespace } = await addressOf(hostile)
  const text = `ü "x" \\ ' 𝄞 \0 $1 ?`
  const part = defineTask({ name: 'part', queue: 'parts', run: async (n: number) => n })
  const whole = defineTask({
    name: 'whole',
    joins: { parts: many(part) },
    run: async (said: string, ctx) => `${await ctx.step('say', async () => said)} ${ctx.joined.parts.counts.completed}`,
  })
  const payloads: unknown[] = []
  const sync = defineOrderedTask({
    name: 'sync',
    queue: 'orders',
    id: (order: { id: string; rev: number }) => order.id,
    score: (order) => order.rev,
    run: async (byId) => void payloads.push(...[...byId.values()].flat()),
  })
  const mill = millrace({ store: url, namespace, tasks: [part, whole, sync], queues: { parts: { maxRunning: 2 } } })
  onTestFinished(() => mill.close())
  const job = await mill.enqueue(whole, text, { after: { parts: [1, 2, 3] } })
  for (const rev of [1, 2, 3]) await mill.enqueue(sync, { id: text.replace('\0', ''), rev })
  await mill.worker().start()

  expect(await job.result({ timeout: '20s' })).toBe(`${text} 3`)
  await expect.poll(() => payloads, { timeout: 20_000 }).toHaveLength(3)
})

it('enqueueIn in a transaction whose search path has functions of its own counts the job, and leaves the path', async () => {
  const { url, schema: namespace } = await addressOf({})
  const bill = defineTask({ name: 'bill' })
  const mill = millrace({ store: url, namespace, tasks: [bill] })
  onTestFinished(() => mill.close())
  await mill.ready()
  const own = `own_${namespace}`
  await admin.query(`CREATE SCHEMA ${own}; GRANT USAGE ON SCHEMA ${own} TO ${namespace}`)
  await admin.query(`CREATE FUNCTION ${own}.cardinality(text[]) RETURNS int LANGUAGE sql AS 'SELECT 0'`)
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(() => client.end())
  await client.query(`SET search_path = ${own}, public; BEGIN`)
  await mill.enqueueIn(client, bill, null)
  const { rows } = await client.query('SHOW search_path')
  await client.query('COMMIT')

  expect(rows).toEqual([{ search_path: `${own}, public` }])
  expect(await mill.depths(['default'])).toMatchObject([{ ready: 1 }])
})
