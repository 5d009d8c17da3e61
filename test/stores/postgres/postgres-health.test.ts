/** The doctor and the fsck of a Postgres store: damage that is done by hand is found, and mended as far as it says. */

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { judgePostgres, type PostgresFacts } from '#src/stores/postgres/health/postgres-doctor-rules.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'

let server: PostgresServer
const closing: { close(): Promise<void> }[] = []

beforeAll(async () => {
  server = await PostgresServer.start()
}, 60_000)
afterAll(async () => {
  for (const one of closing.reverse()) await one.close()
  await server.stop()
})

/** A store with a running, a dead and a waiting job, and what changes its schema by hand. */
async function storeIn(schema: string) {
  const store = new PostgresStore({ address: { ...postgresAddress(server.url), schema } })
  const client = new pg.Client(server.url)
  await client.connect()
  closing.push(store, { close: () => client.end() })
  await store.open([
    { name: 'mail', kind: 'plain', order: 'fifo' },
    { name: 'orders', kind: 'ordered', order: 'fifo' },
  ])
  const jobs = ['dead', 'runs', 'waits'].map((id) => ({ id, task: 'send', payload: '{}', priority: 0, rememberMs: 0 }))
  await store.enqueue([{ callId: 'c', queue: 'mail', jobs }])
  const claimed = async () =>
    (await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 60_000 })).claims[0]!
  await store.settle([{ queue: 'mail', id: 'dead', fence: (await claimed()).fence, kind: 'bury', reason: 'no' }])
  await claimed()
  const change = (text: string) => client.query(text.replaceAll('@.', `${schema}.`))
  const check = async () => (await store.health.check('mail')).map(({ level, text }) => `${level}: ${text}`)
  return { store, change, check }
}

describe('the fsck of a Postgres store', () => {
  it('finds everything in its place, in each queue', async () => {
    const { store } = await storeIn('fsck_whole')
    expect(await store.health.check()).toEqual([
      { level: 'ok', what: 'queue mail', text: '2 jobs, everything in its place' },
      { level: 'ok', what: 'queue orders', text: '0 jobs, everything in its place' },
    ])
    expect((await store.health.repair!()).mended).toEqual([])
    await expect(store.health.check('fax')).rejects.toMatchObject({ code: 'queue-unknown' })
  })

  it.each([
    [
      'counters that are wrong',
      'INSERT INTO @.tally (qid, waiting, dead) VALUES (1, 3, -1)',
      'error: it counts waiting 3 too high, dead 1 too low. Depths are wrong, and bounds hold too early or too late. Run fsck --repair.',
      'counted again: waiting by -3, retries by 0, dead by 1',
    ],
    [
      'a running job without a claim',
      'DELETE FROM @.bunch',
      'error: run under no claim: runs. Nobody takes them back. Run fsck --repair.',
      'running jobs without a claim have a lease of 30 s: runs',
    ],
    [
      'a claim that does not reach its job',
      'UPDATE @.bunch SET hi = lo - 1, lo = lo - 1',
      /error: claims do not know all of their jobs: \d+/,
      /^claims know their jobs again: \d+/,
    ],
    [
      'a fence that was never given',
      `SELECT setval('@.fence_seq', 1)`,
      /error: run, and their fences are higher than the last that was given: runs/,
      'the next fence is higher than that of any job',
    ],
  ])('finds and mends %s', async (what, damage, found, mended) => {
    const { store, change, check } = await storeIn(`fsck_${what.replaceAll(/\W/g, '_')}`)
    await change(damage)
    expect((await check())[0]).toEqual(typeof found === 'string' ? found : expect.stringMatching(found))

    const { mended: all, left } = await store.health.repair!('mail')

    const text = typeof mended === 'string' ? mended : expect.stringMatching(mended)
    expect(all).toEqual([{ what: 'queue mail', text }])
    expect(left).toEqual([{ level: 'ok', what: 'queue mail', text: '2 jobs, everything in its place' }])
  })

  it('finds what belongs to nothing', async () => {
    const { store, change } = await storeIn('fsck_strays')
    await change(`INSERT INTO @.checkpoint (qid, id, log) VALUES (1, 'nobody', 'x')`)
    expect((await store.health.check()).at(-1)).toEqual({
      ...{ level: 'warning', what: 'checkpoints, logs and fields' },
      text: '1 belong to no job. A new job with the same id could get one of them.',
    })
  })

  it('counts the ends of members again, and starts a join that has all of them', async () => {
    const { store, change } = await storeIn('fsck_joins')
    const set = {
      name: 'parts',
      queue: 'mail',
      ids: 'part',
      isMany: false,
      size: 1,
      onDead: 'fail',
      keepsResults: true,
    } as const
    const join = { sets: [set], sealWithinMs: 60_000 }
    const job = { task: 'sum', payload: '{}', priority: 0, rememberMs: 0 }
    await store.joins.enqueue([{ callId: 'j', queue: 'mail', jobs: [{ ...job, id: 'sum', join }] }])
    await change('INSERT INTO @.join_end (sid, number, fate) SELECT sid, 0, 0 FROM @.join_set')
    await change('UPDATE @.join_set SET added = 1')

    expect((await store.health.check('mail'))[0]?.text).toMatch(/^count the ends of their members wrongly: sum\./)
    expect((await store.health.repair!('mail')).mended[0]?.text).toMatch(/members were counted again: sum$/)
    expect((await store.records.get('mail', 'sum'))?.state).toBe('ready')
  })
})

describe('the doctor of a Postgres store', () => {
  it('asks a server all it knows, and hears its own notification', async () => {
    const { store } = await storeIn('doctor_whole')
    const findings = await store.health.examine()
    expect(findings.filter(({ what }) => what !== 'durability').filter(({ level }) => level !== 'ok')).toEqual([])
    expect(findings.map(({ what }) => what)).toEqual([
      ...['version', 'role', 'schema', 'durability', 'notifications', 'transactions', 'dead rows', 'replication slots'],
      ...['connections', 'clock'],
    ])
  })

  it('makes no schema', async () => {
    const address = { ...postgresAddress(server.url), schema: 'doctor_none' }
    const store = new PostgresStore({ address })
    closing.push(store)
    const rows = (await store.health.examine()).find(({ what }) => what === 'dead rows')
    expect(rows?.text).toMatch(/^there is no schema yet/)
  })

  it('names the process whose old transaction keeps dead rows', async () => {
    const { store, change } = await storeIn('doctor_old')
    await change('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await change('SELECT FROM @.job')
    const { text } = (await store.health.examine()).find(({ what }) => what === 'transactions')!
    await change('COMMIT')
    expect(text).toMatch(/^the oldest has been open for/)
  })

  it('warns of listen=none', async () => {
    const store = new PostgresStore({
      address: { ...postgresAddress(`${server.url}?listen=none`), schema: 'doctor_deaf' },
    })
    closing.push(store)
    const heard = (await store.health.examine()).find(({ what }) => what === 'notifications')!
    expect([heard.level, heard.text]).toEqual(['warning', expect.stringContaining('listen=none')])
  })

  const well: PostgresFacts = {
    ...{
      version: 180004,
      said: '18.4',
      isReplica: false,
      isReadOnly: false,
      synchronousCommit: 'on',
      standbys: '',
      followers: 0,
      fsync: 'on',
    },
    ...{ autovacuum: 'on', connections: 5, mostConnections: 97, oldest: null, preparedForMs: null, slots: null },
    ...{ schema: 'jobs', look: { isThere: true, lacking: [], role: 'app' }, mayMake: false, ungranted: 0 },
    ...{ rows: { live: 10, dead: 10 }, aheadMs: 3, tripMs: 1, hears: true },
  }

  it('has nothing to say against a server that is well', () => {
    expect(judgePostgres(well).filter(({ level }) => level !== 'ok')).toEqual([])
  })

  it.each<[string, Partial<PostgresFacts>, string, RegExp]>([
    ['an old version', { version: 120022, said: '12.22' }, 'warning', /^PostgreSQL 12.22 is older/],
    ['a replica', { isReplica: true }, 'error', /^it is a replica/],
    ['read-only transactions', { isReadOnly: true }, 'error', /read-only/],
    [
      'a schema that it may not make',
      { look: { isThere: false, lacking: [], role: 'app' } },
      'error',
      /migrate --role app/,
    ],
    [
      'functions that it may not add',
      { look: { isThere: true, lacking: ['x_1'], role: 'app' } },
      'error',
      /lacks functions/,
    ],
    ['tables that were not granted', { ungranted: 2 }, 'error', /^'app' may not read and write 2/],
    ['a schema that it cannot read', { look: 'no right' }, 'error', /^no right$/],
    ['commits that wait for nothing', { synchronousCommit: 'off' }, 'warning', /'synchronous_commit' is off/],
    [
      'commits that wait for a standby that is away',
      { standbys: 'b' },
      'error',
      /^'synchronous_standby_names' is 'b', and no standby follows/,
    ],
    ['a disk that is never waited for', { fsync: 'off' }, 'error', /'fsync' is off/],
    ['notifications that are lost', { hears: false }, 'error', /Add listen=host:port/],
    ['an old snapshot', { oldest: { forMs: 3_600_000, pid: 7, program: 'psql' } }, 'warning', /process 7 \('psql'\)/],
    ['an old prepared transaction', { preparedForMs: 3_600_000 }, 'warning', /pg_prepared_xacts/],
    ['many dead rows', { rows: { live: 10, dead: 200_000 } }, 'warning', /^200000 beside 10 jobs/],
    ['no autovacuum', { autovacuum: 'off' }, 'error', /'autovacuum' is off/],
    [
      'a slot that nobody reads',
      { slots: [{ name: 's', isActive: false, bytes: 2 ** 31 }] },
      'warning',
      /'s' \(2048 MB\)/,
    ],
    ['few connections left', { connections: 95 }, 'warning', /^95 of 97 are in use/],
    ['a clock that is ahead', { aheadMs: 5_000 }, 'warning', /^the server's is 5s ahead of/],
    ['a long way', { tripMs: 150 }, 'warning', /throughput is limited/],
  ])('warns of %s', (_, facts, level, text) => {
    const wrong = judgePostgres({ ...well, ...facts }).filter((finding) => finding.level !== 'ok')
    expect(wrong).toEqual([{ level, what: expect.any(String), text: expect.stringMatching(text) }])
  })
})
