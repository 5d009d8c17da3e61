import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { postgresHarness } from '#src/store-testing/harness/postgres-harness.js'
import { WarmClients } from '#src/store-testing/harness/warm-clients.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresConnection } from '#src/stores/postgres/client/postgres-connection.js'
import { loadPostgresDriver } from '#src/stores/postgres/client/postgres-driver.js'
import { queue } from '../stores/sqlite/sqlite-scene.js'
import { postgresDatabase } from '../worker-postgres.js'

let url: string
let eyes: pg.Client
beforeAll(async () => {
  url = await postgresDatabase()
  eyes = new pg.Client(url)
  await eyes.connect()
}, 60_000)
afterAll(() => eyes.end())

async function ask(text: string, values: unknown[] = []): Promise<unknown[][]> {
  return (await eyes.query({ text, values, rowMode: 'array' })).rows
}

/** The names of all relations of the schema of this kind: `r` are tables, `S` are sequences. */
async function relations(schema: string, kind: 'r' | 'S'): Promise<string[]> {
  const rows = await ask(
    'SELECT oid::regclass::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = $2 ORDER BY 1',
    [schema, kind],
  )
  return rows.map(([name]) => String(name))
}

/** Puts a row into every table, and draws a number from every sequence. */
async function useAll(schema: string): Promise<void> {
  for (const table of await relations(schema, 'r')) {
    const [[insert]] = (await ask(
      `SELECT format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s)', $1::text,
         string_agg(quote_ident(attname), ', '), string_agg(quote_literal(CASE WHEN typcategory = 'B' THEN 'true'
           WHEN typcategory = 'A' OR typname = 'json' THEN '{}' WHEN typname = 'uuid' THEN gen_random_uuid()::text ELSE '7' END), ', '))
       FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid
       WHERE attrelid = $1::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped`,
      [table],
    )) as [[string]]
    await ask(insert)
  }
  for (const sequence of await relations(schema, 'S')) await ask('SELECT nextval($1)', [sequence])
}

/** Everything in the schema: rows, the next numbers of its sequences, and what the catalog says. The fences alone go on. */
async function contents(schema: string) {
  const [tables, sequences] = [await relations(schema, 'r'), await relations(schema, 'S')]
  const of = async (names: string[], look: (name: string) => Promise<unknown[][]>) => {
    const found: Record<string, unknown[][]> = {}
    for (const name of names) found[name] = await look(name)
    return found
  }
  return {
    rows: await of(tables, (name) => ask(`SELECT to_jsonb(t) FROM ${name} t ORDER BY t::text`)),
    numbers: await of(
      sequences.filter((name) => !name.endsWith('.fence_seq')),
      (name) => ask(`SELECT last_value, is_called FROM ${name}`),
    ),
    columns: await ask(
      `SELECT c.relname, c.reloptions, attname, atttypid::regtype::text, attnotnull, attidentity, attgenerated, pg_get_expr(adbin, adrelid)
       FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum
       WHERE relnamespace = $1::regnamespace AND attnum > 0 ORDER BY 1, attnum`,
      [schema],
    ),
    indexes: await ask('SELECT indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY 1', [schema]),
    constraints: await ask(
      'SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = $1::regnamespace ORDER BY 1, 2',
      [schema],
    ),
    triggers: await ask(
      `SELECT pg_get_triggerdef(t.oid), tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
       WHERE relnamespace = $1::regnamespace ORDER BY 1`,
      [schema],
    ),
    functions: await ask(
      'SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace ORDER BY 1',
      [schema],
    ),
  }
}

const lastFence = async (schema: string) => Number((await ask(`SELECT last_value FROM ${schema}.fence_seq`))[0]![0])

/** The processes of the server that serve stores. */
async function backends(): Promise<number[]> {
  const rows = await ask(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'millrace' AND datname = current_database() ORDER BY 1",
  )
  return rows.map(([pid]) => Number(pid))
}

describe('the harness of Postgres', () => {
  it('hands out a used schema as it was when it was new, with fences that have only grown', async () => {
    const makeHarness = postgresHarness(url)
    const first = await makeHarness()
    const [fresh, fence] = [await contents(first.schema), await lastFence(first.schema)]
    await useAll(first.schema)
    const rows = Object.values((await contents(first.schema)).rows)
    expect(rows.filter((one) => one.length === 0)).toEqual([])
    await first.close()

    const second = await makeHarness()
    onTestFinished(() => second.close())

    expect(second.schema).toBe(first.schema)
    expect(await contents(second.schema)).toEqual(fresh)
    expect(await lastFence(second.schema)).toBeGreaterThan(fence)
  })

  it('lends the connections of a closed harness to the next; one that a store has ended, or the server, is not lent again', async () => {
    const makeHarness = postgresHarness(url)
    const first = await makeHarness()
    await (await first.open()).open([queue])
    const ended = await first.open()
    await ended.open([queue])
    const two = await backends()
    await ended.close()
    await expect.poll(backends).toHaveLength(1)
    const kept = await backends()
    await first.close()

    const second = await makeHarness()
    await (await second.open()).open([queue])
    expect(two).toHaveLength(2)
    expect(await backends()).toEqual(kept)
    await second.close()

    await ask('SELECT pg_terminate_backend($1)', [kept[0]])
    await expect.poll(backends).toEqual([])
    const third = await makeHarness()
    expect(await (await third.open()).open([queue])).toHaveLength(1)
    expect(await backends()).not.toEqual(kept)
    await third.close()
  })
})

describe('a connection that is lent', () => {
  const seen = `SELECT pg_backend_pid(), current_setting('work_mem'), (SELECT count(*)::int FROM pg_listening_channels()),
    (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())`
  const pidOf = async (connection: PostgresConnection) => (await connection.query('SELECT pg_backend_pid()'))[0]![0]

  async function lender() {
    const clients = new WarmClients(await loadPostgresDriver())
    return {
      lent: () => new PostgresConnection(postgresAddress(url), 'none', clients.lend),
      back: (connection: PostgresConnection) => clients.takeBack(() => connection.close()),
    }
  }

  it('has forgotten what it heard, was set to and had locked for whom it was lent before', async () => {
    const { lent, back } = await lender()
    const first = lent()
    const [fresh] = await first.query(seen)
    await first.listen('bell', () => {})
    await first.query("SET work_mem = '1MB'; SELECT pg_advisory_lock(7)")
    const [used] = await first.query(seen)
    await back(first)

    const second = lent()
    onTestFinished(() => second.close())

    expect(used).toEqual([fresh![0], '1MB', 1, 1])
    expect(await second.query(seen)).toEqual([fresh])
  })

  it('tells whom it was lent before nothing more', async () => {
    const { lent, back } = await lender()
    const heard: string[] = []
    const first = lent()
    await first.listen('bell', (channel) => heard.push(`first: ${channel}`))
    await back(first)
    const second = lent()
    onTestFinished(() => second.close())
    await second.listen('bell', (channel) => heard.push(`second: ${channel}`))

    await ask("NOTIFY bell, 'now'")
    await expect.poll(() => heard).toEqual(['second: bell'])
  })

  it('is ended if it still owes an answer or a transaction is open', async () => {
    const { lent, back } = await lender()
    const open = lent()
    const first = await pidOf(open)
    await open.query('BEGIN')
    await back(open)
    const owing = lent()
    const second = await pidOf(owing)
    const rejected = expect(owing.query('SELECT pg_sleep(30)')).rejects.toMatchObject({ code: 'closed' })
    await back(owing)
    await rejected
    const third = lent()
    onTestFinished(() => third.close())

    expect(new Set([first, second, await pidOf(third)]).size).toBe(3)
  })
})
