import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresConnection } from '#src/stores/postgres/client/postgres-connection.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { inSchema, quoted } from '#src/stores/postgres/schema/sql-function.js'
import { postgresDatabase } from '../../worker-postgres.js'

let url: string
const stores: PostgresStore[] = []

beforeAll(async () => {
  url = await postgresDatabase()
}, 60_000)
afterAll(async () => {
  for (const store of stores) await store.close()
})

function storeIn(schema: string): PostgresStore {
  const store = new PostgresStore({ address: { ...postgresAddress(url), schema } })
  stores.push(store)
  return store
}

const mail = { name: 'mail', kind: 'plain', order: 'fifo' } as const

describe('the schema of a Postgres store', () => {
  it('is made once, by whichever of several processes opens it first', async () => {
    const opened = await Promise.all(Array.from({ length: 4 }, () => storeIn('at-once').open([mail])))

    expect(opened.map(([queue]) => queue?.name)).toEqual(['mail', 'mail', 'mail', 'mail'])
  })

  it('may have capitals, dots and hyphens in its name', async () => {
    const store = storeIn('Shop.jobs-2')
    await store.open([mail])

    expect((await store.depth(['mail'])).depths[0]!.ready).toBe(0)
  })

  it('gets the functions that it lacks, and keeps those of another version', async () => {
    await storeIn('older').open([mail])
    const connection = new PostgresConnection(postgresAddress(url), 'older')
    await connection.query(
      `DROP FUNCTION older.depth_1; CREATE FUNCTION older.depth_0() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
    )

    const depths = await Promise.all([storeIn('older'), storeIn('older')].map((store) => store.depth(['mail'])))

    expect(depths.map((of) => of.depths[0]!.ready)).toEqual([0, 0])
    expect(await connection.query('SELECT older.depth_0()', [])).toEqual([[1]])
    await connection.close()
  })

  it('is refused if a newer version of Millrace has made it', async () => {
    await storeIn('newer').open([mail])
    const connection = new PostgresConnection(postgresAddress(url), 'newer')
    await connection.query(inSchema("UPDATE @.meta SET value = '2' WHERE name = 'version'", 'newer'))

    await expect(storeIn('newer').open([mail])).rejects.toMatchObject({ code: 'store-newer' })
    await connection.query(`DROP SCHEMA ${quoted('newer')} CASCADE`)
    await connection.close()
  })
})
