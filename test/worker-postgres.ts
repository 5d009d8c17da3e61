/** One Postgres for all test files that a process runs and that keep to schemas of their own. It ends with the process. */

import pg from 'pg'
import { onTestFinished } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'

let started: Promise<PostgresServer> | undefined
let made = 0

export function workerPostgres(): Promise<PostgresServer> {
  started ??= PostgresServer.start()
  return started
}

/** The address of a store in a schema that nobody else uses. */
export async function postgresStoreAddress(): Promise<string> {
  const { url } = await workerPostgres()
  made += 1
  return `${url}?schema=mill_${process.pid}_${made}`
}

/** Schemas of tests that are over, whose stores are closed. */
const used: string[] = []
let eyes: Promise<pg.Client> | undefined

/**
 * The same, for a test that changes no more than rows in it. It may be one that an earlier test has used: to make one takes
 * longer than most tests.
 */
export async function lentPostgresAddress(): Promise<string> {
  const lent = used.pop()
  if (lent === undefined) return postgresStoreAddress().then(lentToTest)
  eyes ??= connected()
  await (await eyes).query(emptying(schemaOf(lent)))
  return lentToTest(lent)
}

function lentToTest(address: string): string {
  onTestFinished(() => void used.push(address))
  return address
}

export function schemaOf(address: string): string {
  return new URL(address).searchParams.get('schema')!
}

/** A client of the server, on the database of the stores or another one, until the test ends. */
export async function testClient(url?: string): Promise<pg.Client> {
  const client = await connected(url)
  onTestFinished(() => client.end())
  return client
}

/** Resolves once a call of this function of the schema waits for a lock. */
export async function lockWait(schema: string, call: string): Promise<void> {
  const client = await testClient()
  const looks = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`
  while ((await client.query(looks, [`%${schema}%.${call}(%`])).rowCount === 0);
}

async function connected(url?: string): Promise<pg.Client> {
  // Its types leave `unref` out.
  const client = new pg.Client(url ?? (await workerPostgres()).url) as pg.Client & { unref(): void }
  // The server ends before this process does, which it does not keep alive.
  client.on('error', () => {})
  await client.connect()
  client.unref()
  return client
}

/** Fences go on, as they do in a schema that is made later. */
const emptying = (schema: string) => `DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT oid::regclass AS name, relname, relkind FROM pg_class WHERE relnamespace = '${schema}'::regnamespace LOOP
    CONTINUE WHEN one.relname = 'fence_seq';
    IF one.relname = 'meta' THEN EXECUTE format('DELETE FROM %s WHERE name <> ''version''', one.name);
    ELSIF one.relkind = 'r' THEN EXECUTE format('DELETE FROM %s', one.name);
    ELSIF one.relkind = 'S' THEN PERFORM setval(one.name, 1, false); END IF;
  END LOOP;
END $$`

/** The address of a database that nobody else uses: for what makes schemas of fixed names. */
export async function postgresDatabase(): Promise<string> {
  const { url } = await workerPostgres()
  made += 1
  const name = `database_${process.pid}_${made}`
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  return new URL(name, url).href
}
