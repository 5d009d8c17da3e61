/** Roles with few rights on a Postgres store: an administrator makes the schema, and others work in it. */

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'

let server: PostgresServer
let admin: pg.Client
const stores: PostgresStore[] = []

beforeAll(async () => {
  server = await PostgresServer.start()
  admin = await clientOf('postgres')
  await admin.query('CREATE ROLE app LOGIN; CREATE ROLE shop LOGIN; CREATE ROLE "a ""b" LOGIN')
}, 60_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  await admin.end()
  await server.stop()
})

const urlOf = (role: string) => server.url.replace('postgres@', `${role}@`)

async function clientOf(role: string): Promise<pg.Client> {
  const client = new pg.Client(urlOf(role))
  await client.connect()
  return client
}

function storeAs(role: string, schema: string): PostgresStore {
  const store = new PostgresStore({ address: { ...postgresAddress(urlOf(role)), schema } })
  stores.push(store)
  return store
}

const mail = { name: 'mail', kind: 'plain', order: 'fifo' } as const
const job = (id: string) => ({ id, task: 'send', payload: '{}', priority: 0, rememberMs: 0 })
const nobody = { workers: [], enqueuers: [] }

describe('the migration of a Postgres store', () => {
  it('is a text that makes all, ends with the grants, and may be run again', async () => {
    const sql = storeAs('app', 'by_hand').migration.sql({ workers: ['app', 'a "b'], enqueuers: ['shop'] })

    expect(sql.startsWith('BEGIN;\n')).toBe(true)
    expect(sql.trimEnd().split('\n').slice(-6)).toEqual([
      'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "by_hand" TO "a ""b";',
      'GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA "by_hand" TO "a ""b";',
      'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "by_hand" TO "a ""b";',
      'GRANT USAGE ON SCHEMA "by_hand" TO "shop";',
      'GRANT EXECUTE ON FUNCTION "by_hand".enqueue TO "shop";',
      'COMMIT;',
    ])
    await admin.query(sql)
    await admin.query(sql)
    expect((await storeAs('app', 'by_hand').open([mail]))[0]?.name).toBe('mail')
  })

  it('says what it made, and grants to roles that come later', async () => {
    const { migration } = storeAs('postgres', 'later')
    const first = await migration.migrate(nobody)
    const again = await migration.migrate({ workers: ['app'], enqueuers: [] })

    expect(first).toEqual({ schema: 'later', isNew: true, functions: expect.arrayContaining(['claim_2', 'enqueue']) })
    expect(again).toEqual({ schema: 'later', isNew: false, functions: [] })
    await storeAs('app', 'later').open([mail])
  })

  it('adds what an older schema lacks', async () => {
    const { migration } = storeAs('postgres', 'aged')
    await migration.migrate(nobody)
    await admin.query('DROP FUNCTION aged.depth_1')

    expect(await migration.migrate(nobody)).toEqual({ schema: 'aged', isNew: false, functions: ['depth_1'] })
  })

  it('replaces an older function that users call, and no newer one', async () => {
    const { migration } = storeAs('postgres', 'called')
    await migration.migrate(nobody)
    const body = async () =>
      (await admin.query("SELECT prosrc FROM pg_proc WHERE oid = 'called.enqueue'::regproc")).rows[0].prosrc as string
    const now = await body()
    const put = (first: string) =>
      admin.query(
        `CREATE OR REPLACE FUNCTION called.enqueue(queue text, task text, input json, options jsonb DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$${first}BEGIN RETURN 'x'; END$$`,
      )

    await put('')
    await storeAs('postgres', 'called').open([mail])
    expect(await body()).toBe(now)
    await put('-- version 99\n')
    await storeAs('postgres', 'called').open([mail])
    expect(await body()).toContain('version 99')
  })

  it('refuses a role that does not exist', async () => {
    const { migration } = storeAs('postgres', 'unmade')
    await expect(migration.migrate({ workers: ['nobody'], enqueuers: [] })).rejects.toMatchObject({
      code: 'argument-invalid',
      message: expect.stringContaining('CREATE ROLE "nobody"'),
    })
    expect((await admin.query("SELECT to_regnamespace('unmade') AS made")).rows).toEqual([{ made: null }])
  })

  it('may be made in a schema that somebody else has made empty', async () => {
    await admin.query('CREATE SCHEMA given; GRANT USAGE, CREATE ON SCHEMA given TO app')
    expect((await storeAs('app', 'given').open([mail]))[0]?.name).toBe('mail')
  })
})

describe('a role that may make nothing', () => {
  it('learns which command makes the schema that is missing', async () => {
    await expect(storeAs('app', 'absent').open([mail])).rejects.toMatchObject({
      code: 'store-refused',
      message: expect.stringMatching(/^the schema 'absent' is not made yet.*`millrace migrate --role app`/),
    })
  })

  it('learns what an older schema lacks', async () => {
    await storeAs('postgres', 'behind').migration.migrate({ workers: ['app'], enqueuers: [] })
    await admin.query('DROP FUNCTION behind.depth_1; DROP FUNCTION behind.ring_2')
    await expect(storeAs('app', 'behind').open([mail])).rejects.toMatchObject({
      code: 'store-refused',
      message: expect.stringMatching(/^the schema 'behind' is older than .* lacks \(ring_2, depth_1|depth_1, ring_2\)/),
    })
  })

  it('learns that it was granted nothing', async () => {
    await storeAs('postgres', 'ungranted').migration.migrate(nobody)
    await expect(storeAs('app', 'ungranted').open([mail])).rejects.toMatchObject({
      code: 'store-refused',
      message: expect.stringMatching(
        /^the role 'app' may not use the schema 'ungranted'.*`millrace migrate --role app`/,
      ),
    })
  })

  it('opens, works, waits, rings and checks', async () => {
    await storeAs('postgres', 'granted').migration.migrate({ workers: ['app'], enqueuers: [] })
    const [worker, client] = [storeAs('app', 'granted'), storeAs('app', 'granted')]
    await worker.open([mail, { name: 'orders', kind: 'ordered', order: 'fifo' }])
    const heard = worker.wait(['mail'], 30_000, new AbortController().signal)
    await client.open([mail])
    await client.enqueue([{ callId: 'c', queue: 'mail', jobs: [job('a'), job('b')] }])

    expect(await heard).toEqual(['mail'])
    const { claims } = await worker.claim([{ queue: 'mail', limit: 2 }], { worker: 'w', leaseMs: 60_000 })
    const items = claims.map(({ queue, id, fence }) => ({ queue, id, fence }))
    expect(await worker.extend(items.map((item) => ({ ...item, leaseMs: 60_000 })))).toHaveLength(2)
    const settled = await worker.settle([
      { ...items[0]!, kind: 'complete' },
      { ...items[1]!, kind: 'bury', reason: 'no' },
    ])
    expect(settled).toHaveLength(2)
    expect((await worker.depth(['mail'])).depths[0]).toMatchObject({ ready: 0, dead: 1 })
    const beaten = { id: 'w', host: 'h', pid: 1, queues: ['mail'], running: 0 } as never
    await worker.workers.beat(beaten, 60_000)
    expect(await worker.workers.list()).toHaveLength(1)
    expect((await worker.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
    expect((await worker.health.repair!()).mended).toEqual([])
    // A server of tests does not wait for its disk.
    const found = (await worker.health.examine()).filter(({ level }) => level !== 'ok')
    expect(found.map(({ what }) => what)).toEqual(['durability'])
  })
})

describe('a role that may only enqueue by SQL', () => {
  it('calls the one function, and touches nothing else', async () => {
    const store = storeAs('postgres', 'counter')
    await store.open([mail])
    await store.migration.migrate({ workers: ['app'], enqueuers: ['shop'] })
    const shop = await clientOf('shop')
    const refused = (text: string) => expect(shop.query(text)).rejects.toMatchObject({ code: '42501' })

    const { rows } = await shop.query(`SELECT counter.enqueue('mail', 'send', '{}', '{"id": "by-sql"}') AS id`)
    expect(rows).toEqual([{ id: 'by-sql' }])
    await refused('SELECT FROM counter.job')
    await refused(`SELECT counter.queue_names_1()`)
    await shop.end()
    expect((await store.depth(['mail'])).depths[0]!.ready).toBe(1)
  })

  it('must be named: who may only look into the schema may not', async () => {
    await storeAs('postgres', 'looked').open([mail])
    await admin.query('GRANT USAGE ON SCHEMA looked TO shop')
    const shop = await clientOf('shop')
    await expect(shop.query(`SELECT looked.enqueue('mail', 'send', '{}')`)).rejects.toMatchObject({ code: '42501' })
    await shop.end()
  })
})

describe('a process that finds all functions there', () => {
  it('makes nothing and waits for no lock, however many start at once', async () => {
    await storeAs('postgres', 'busy').open([mail])
    const holder = await clientOf('postgres')
    const { rows } = await holder.query(`SELECT prosrc FROM pg_proc WHERE oid = 'busy.write_queues_1'::regproc`)
    const lock = /pg_advisory_xact_lock\((-?\d+), 1\)/.exec(rows[0].prosrc)![1]
    await holder.query(`BEGIN; SELECT pg_advisory_xact_lock(${lock}, 0), pg_advisory_xact_lock(${lock}, 1)`)
    await admin.query(`CREATE FUNCTION no_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'made something'; END$$;
      CREATE EVENT TRIGGER no_ddl ON ddl_command_start EXECUTE FUNCTION no_ddl()`)
    try {
      const opened = await Promise.all(Array.from({ length: 12 }, () => storeAs('postgres', 'busy').open([mail])))
      expect(opened.flat().map(({ name }) => name)).toEqual(Array(12).fill('mail'))
    } finally {
      await admin.query('DROP EVENT TRIGGER no_ddl')
      await holder.end()
    }
  })
})
