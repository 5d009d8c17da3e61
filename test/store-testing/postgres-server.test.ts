import { existsSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findPostgres, PostgresServer } from '#src/store-testing/servers/postgres-server.js'

let server: PostgresServer

beforeAll(async () => {
  server = await PostgresServer.start()
}, 60_000)
afterAll(() => server.stop())

async function ask(text: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const { rows } = await client.query({ text, rowMode: 'array' })
  await client.end()
  return rows[0]?.[0]
}

describe('a Postgres server for tests', () => {
  it('answers under its url, and spends no time on safety or on compiling', async () => {
    expect(await ask("SELECT current_setting('fsync') || ' ' || current_setting('jit')")).toBe('off off')
  })

  it('keeps what was stored over a crash, if its settings say so', async () => {
    const safe = await PostgresServer.start({ settings: { fsync: 'on' } })
    const client = new pg.Client({ connectionString: safe.url })
    client.on('error', () => {})
    await client.connect()
    await client.query('CREATE TABLE kept AS SELECT 7 AS n')
    await safe.restart()
    const again = new pg.Client({ connectionString: safe.url })
    await again.connect()

    expect((await again.query('SELECT n FROM kept')).rows).toEqual([{ n: 7 }])
    await again.end()
    await safe.stop()
  })

  it('has a standby, which follows what is committed and takes no writes until it is promoted', async () => {
    await ask('CREATE TABLE followed AS SELECT 7 AS n')
    const standby = await PostgresServer.start({ standbyOf: server })
    const client = new pg.Client({ connectionString: standby.url })
    await client.connect()
    expect((await client.query('SELECT n FROM followed')).rows).toEqual([{ n: 7 }])
    await expect(client.query('DELETE FROM followed')).rejects.toThrow('read-only')
    await client.query('SELECT pg_promote()')
    expect((await client.query('DELETE FROM followed')).rowCount).toBe(1)
    await client.end()
    await standby.stop()
  })

  it('leaves no data behind when it is stopped', async () => {
    const other = await PostgresServer.start()
    await other.stop()
    await other.stop()

    expect(existsSync(other.directory)).toBe(false)
    await expect(other.restart()).rejects.toThrow('was stopped')
  })

  it('says how to get one if POSTGRES_BIN names no folder with its programs', async () => {
    await expect(findPostgres({ POSTGRES_BIN: '/nowhere' }, process.cwd())).rejects.toThrow(/POSTGRES_BIN.*\/nowhere/)
  })
})
