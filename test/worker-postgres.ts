/** One Postgres for all test files that a process runs and that keep to schemas of their own. It ends with the process. */

import pg from 'pg'
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
