/**
 * The clients of Postgres that users have, each with a transaction of its own. They are loaded by name: the types of five
 * ORMs would take longer to check than all that is done with them.
 */

import pg from 'pg'

export type Isolation = 'read committed' | 'serializable'

/** One open transaction: what `enqueueIn` takes, and a statement of the user's own in it, with one parameter `$1`. */
export interface OpenTransaction {
  readonly tx: object
  run(text: string, value: string): Promise<unknown>
}

/** Runs `work` in a transaction, which commits, or rolls back if it rejects. */
export type Transact = (isolation: Isolation, work: (open: OpenTransaction) => Promise<void>) => Promise<void>

export interface Client {
  readonly transact: Transact
  /** What the client has outside a transaction, where each statement is committed by itself. */
  readonly outside: readonly object[]
  close(): Promise<unknown>
}

const load = async (name: string): Promise<Record<string, never>> => (await import(name)) as Record<string, never>

/** Untyped on purpose: see above. */
// biome-ignore lint/suspicious/noExplicitAny: the clients are loaded without their types.
type Loaded = any

const marks = (text: string) => text.replaceAll('$1', '?')

/** On a connection of pg. */
async function begun(client: pg.PoolClient, isolation: Isolation, work: () => Promise<void>): Promise<void> {
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`)
  try {
    await work()
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

export const clients: Readonly<Record<string, (url: string) => Promise<Client>>> = {
  async pg(url) {
    const pool = new pg.Pool({ connectionString: url })
    const transact: Transact = async (isolation, work) => {
      const tx = await pool.connect()
      await begun(tx, isolation, () => work({ tx, run: (text, value) => tx.query(text, [value]) }))
    }
    const idle = await pool.connect()
    const close = () => {
      idle.release()
      return pool.end()
    }
    return { transact, outside: [pool, idle], close }
  },

  async 'a function'(url) {
    const pool = new pg.Pool({ connectionString: url })
    const transact: Transact = async (isolation, work) => {
      const client = await pool.connect()
      const tx = async (text: string, values: unknown[]) => (await client.query(text, values)).rows
      await begun(client, isolation, () => work({ tx, run: (text, value) => tx(text, [value]) }))
    }
    return { transact, outside: [], close: () => pool.end() }
  },

  async 'postgres.js'(url) {
    const sql: Loaded = (await load('postgres'))['default']
    const db = sql(url, { onnotice: () => {} })
    const transact: Transact = (isolation, work) =>
      db.begin(`isolation level ${isolation}`, (tx: Loaded) =>
        work({ tx, run: (text, value) => tx.unsafe(text, [value]) }),
      )
    return { transact, outside: [db], close: () => db.end() }
  },

  async 'Drizzle on pg'(url) {
    const { drizzle }: Loaded = await load('drizzle-orm/node-postgres')
    const pool = new pg.Pool({ connectionString: url })
    return { ...(await ofDrizzle(drizzle(pool))), close: () => pool.end() }
  },

  async 'Drizzle on postgres.js'(url) {
    const { drizzle }: Loaded = await load('drizzle-orm/postgres-js')
    const client = ((await load('postgres'))['default'] as Loaded)(url)
    return { ...(await ofDrizzle(drizzle(client))), close: () => client.end() }
  },

  async Kysely(url) {
    const { Kysely, PostgresDialect, CompiledQuery }: Loaded = await load('kysely')
    const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }) })
    const transact: Transact = (isolation, work) =>
      db
        .transaction()
        .setIsolationLevel(isolation)
        .execute((tx: Loaded) => work({ tx, run: (text, value) => tx.executeQuery(CompiledQuery.raw(text, [value])) }))
    return { transact, outside: [db], close: () => db.destroy() }
  },

  async "TypeORM's manager"(url) {
    const { DataSource }: Loaded = await load('typeorm')
    const source = await new DataSource({ type: 'postgres', url }).initialize()
    const transact: Transact = (isolation, work) =>
      source.transaction(isolation.toUpperCase(), (tx: Loaded) =>
        work({ tx, run: (text, value) => tx.query(text, [value]) }),
      )
    return { transact, outside: [source, source.manager], close: () => source.destroy() }
  },

  async "TypeORM's query runner"(url) {
    const { DataSource }: Loaded = await load('typeorm')
    const source = await new DataSource({ type: 'postgres', url }).initialize()
    const transact: Transact = async (isolation, work) => {
      const tx = source.createQueryRunner()
      await tx.startTransaction(isolation.toUpperCase())
      try {
        await work({ tx, run: (text, value) => tx.query(text, [value]) })
        await tx.commitTransaction()
      } catch (error) {
        await tx.rollbackTransaction()
        throw error
      } finally {
        await tx.release()
      }
    }
    return { transact, outside: [source.createQueryRunner()], close: () => source.destroy() }
  },

  async Knex(url) {
    const knex: Loaded = (await load('knex'))['default']
    const db = knex({ client: 'pg', connection: url })
    const transact: Transact = (isolation, work) =>
      db.transaction((tx: Loaded) => work({ tx, run: (text, value) => tx.raw(marks(text), [value]) }), {
        isolationLevel: isolation,
      })
    return { transact, outside: [db], close: () => db.destroy() }
  },

  async Prisma(url) {
    const { PrismaPg }: Loaded = await load('@prisma/adapter-pg')
    const { PrismaClient }: Loaded = await load('./prisma-client.mjs')
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
    const transact: Transact = (isolation, work) =>
      prisma.$transaction((tx: Loaded) => work({ tx, run: (text, value) => tx.$executeRawUnsafe(text, value) }), {
        ...{ timeout: 20_000, maxWait: 20_000 },
        isolationLevel: isolation === 'serializable' ? 'Serializable' : 'ReadCommitted',
      })
    return { transact, outside: [prisma], close: () => prisma.$disconnect() }
  },
}

async function ofDrizzle(db: Loaded): Promise<Pick<Client, 'transact' | 'outside'>> {
  const { sql }: Loaded = await load('drizzle-orm')
  const statement = (text: string, value: string) => {
    const [before, after] = text.split('$1')
    return sql`${sql.raw(before)}${value}${sql.raw(after)}`
  }
  const transact: Transact = (isolation, work) =>
    db.transaction((tx: Loaded) => work({ tx, run: (text, value) => tx.execute(statement(text, value)) }), {
      isolationLevel: isolation,
    })
  return { transact, outside: [db] }
}
