import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { inSchema } from '#src/stores/postgres/schema/sql-function.js'
import { shardOf } from '#src/stores/rules/payloads.js'
import { lockWait, postgresDatabase } from '../../worker-postgres.js'

let url: string
const stores: PostgresStore[] = []
const clients: pg.Client[] = []
const orders = { name: 'orders', kind: 'ordered', order: 'fifo' } as const
const ids = ['a', 'b', 'c', 'd', 'e']

beforeAll(async () => {
  url = await postgresDatabase()
}, 60_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  for (const client of clients) await client.end()
})

async function storeIn(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore({ address: { ...postgresAddress(url), schema } })
  stores.push(store)
  await store.open([orders])
  return store
}

async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  clients.push(client)
  await client.connect()
  return client
}

/** Pushes within the transaction of this connection. */
async function push(client: pg.Client, schema: string, jobs: readonly { id: string; payload: string }[]) {
  const columns = [jobs.map(({ id }) => id), jobs.map(() => 'sync'), jobs.map(({ payload }) => payload)]
  await client.query(
    `SELECT ${schema}.push_1((SELECT qid FROM ${schema}.queue), 'all', $1, $2, $3, NULL, NULL, NULL, NULL, $4, NULL, $5, NULL, $6, $7)`,
    [...columns, jobs.map(() => 1), jobs.map(() => randomUUID()), [randomUUID()], [jobs.length]],
  )
}

/** Leaves a payload in the inbox, of a group: then a claim looks at limits. */
async function leaveInInbox(store: PostgresStore, user: pg.Client, id: string): Promise<void> {
  const job = { id, task: 'sync', payload: '1', priority: 0, rememberMs: 0, group: 'g' }
  await user.query('BEGIN')
  expect(await store.transactions.enqueue(user, { queue: 'orders', jobs: [job] })).toEqual(['added'])
  await user.query('COMMIT')
}

const claimer = (worker: string) => ({ worker, leaseMs: 30_000 })

/** Some ids, mostly several and in any order, each with a payload that names its producer and its place. */
function someJobs(producer: string, from: number, seed: number) {
  const count = 1 + (seed % 4)
  return Array.from({ length: count }, (_, i) => ({
    id: ids[(seed * 7 + i * 3 + (seed >> 3)) % ids.length]!,
    payload: `${producer} ${from + i}`,
  }))
}

describe('ordered ids on a Postgres store', () => {
  it('keep the groups that a transaction of a user gives them', async () => {
    const [store, client] = [await storeIn('grouped'), await connected()]
    const job = { id: 'x', task: 'sync', payload: '1', priority: 0, rememberMs: 0, group: 'g' }
    await client.query('BEGIN')
    expect(await store.transactions.enqueue(client, { queue: 'orders', jobs: [job] })).toEqual(['added'])
    await client.query('COMMIT')

    const { claims } = await store.claim([{ queue: 'orders', limit: 5 }], claimer('w'))
    expect(claims).toMatchObject([{ id: 'x', group: 'g' }])
  })

  it('are not lost if the claim that takes some finds an expired lease in another shard', async () => {
    const store = await storeIn('shards')
    await store.open([{ ...orders, name: 'wide', shards: 5 }])
    const jobs = Array.from({ length: 20 }, (_, i) => ({
      id: `id-${i}`,
      task: 'sync',
      payload: '1',
      priority: 0,
      rememberMs: 0,
    }))
    await store.enqueue([{ callId: 'all', queue: 'wide', jobs }])
    // The lease is over as soon as it is had.
    const lost = await store.claim([{ queue: 'wide', shard: 4, limit: 1, leaseMs: 0 }], claimer('gone'))
    expect(lost.claims).toHaveLength(1)

    const seen: string[] = []
    for (let claimed = 0; claimed < jobs.length; ) {
      const { claims, crashed } = await store.claim([{ queue: 'wide', limit: 100 }], {
        ...claimer('w'),
        alone: false,
      })
      const alone =
        claims.length > 0
          ? []
          : (await store.claim([{ queue: 'wide', limit: 1 }], { ...claimer('w'), alone: true })).claims
      seen.push(...[...claims, ...alone].map(({ id }) => id), ...crashed.map(() => 'crashed'))
      expect(claims.length + alone.length).toBeGreaterThan(0)
      claimed += claims.length + alone.length
    }
    expect(seen.sort()).toEqual([...jobs.map(({ id }) => id), 'crashed'].sort())
  })

  it('lose nothing, run one claim at a time and keep their order while transactions with pushes stay open or roll back', async () => {
    const schema = 'ordered_many'
    const producers = [await storeIn(schema), await storeIn(schema)]
    const workers = await Promise.all([storeIn(schema), storeIn(schema), storeIn(schema)])
    const openTransactions = [await connected(), await connected()]
    const pushed = new Set<string>()
    const done: string[] = []
    const running = new Set<string>()
    const last = new Map<string, number>()
    let producing = producers.length + openTransactions.length
    let claims = 0
    const rounds = 60

    const produce = async (store: PostgresStore, producer: string) => {
      for (let round = 0, n = 0; round < rounds * 2; round++) {
        const jobs = someJobs(producer, n, round + producer.length * 31)
        n += jobs.length
        await store.enqueue([
          {
            ...{ callId: `${producer} ${round}`, queue: 'orders' },
            jobs: jobs.map((job) => ({ ...job, task: 'sync', priority: 0, rememberMs: 0 })),
          },
        ])
        for (const { id, payload } of jobs) pushed.add(`${id} ${payload}`)
      }
      producing -= 1
    }
    /** Each transaction is open while workers claim a few times. */
    const produceOpenly = async (client: pg.Client, producer: string) => {
      for (let round = 0, n = 0; round < rounds; round++) {
        const jobs = someJobs(producer, n, round * 5 + 3)
        n += jobs.length
        await client.query('BEGIN')
        await push(client, schema, jobs)
        for (const until = claims + (round % 7); claims < until; ) await client.query('SELECT 1')
        const isKept = round % 5 !== 0
        // What is committed may be claimed before the answer is here.
        if (isKept) for (const { id, payload } of jobs) pushed.add(`${id} ${payload}`)
        await client.query(isKept ? 'COMMIT' : 'ROLLBACK')
      }
      producing -= 1
    }
    const work = async (store: PostgresStore, worker: string) => {
      for (let round = 0; producing > 0 || done.length < pushed.size; round++) {
        const from = [{ queue: 'orders', limit: 3, ...(round % 3 === 0 ? { maxPayloads: 2 } : {}) }]
        const claimed = await store.claim(from, claimer(worker))
        claims += 1
        const items = claimed.claims.map(({ queue, id, fence, payloads }, i) => {
          expect(running.has(id), `'${id}' runs once`).toBe(false)
          running.add(id)
          const isFailure = (round + i) % 6 === 0
          const finished = isFailure ? payloads!.slice(0, payloads!.length === 1 ? 0 : 1) : payloads!
          for (const { payload } of finished) {
            const [producer, place] = String(payload).split(' ')
            const before = last.get(`${id} ${producer}`) ?? -1
            expect(Number(place), `${payload} of '${id}' comes after ${before}`).toBeGreaterThan(before)
            last.set(`${id} ${producer}`, Number(place))
            done.push(`${id} ${payload}`)
          }
          return {
            queue,
            id,
            fence,
            ...(isFailure ? ({ kind: 'retry', delayMs: 0, done: 1 } as const) : ({ kind: 'complete' } as const)),
          } as const
        })
        for (const { id } of items) running.delete(id)
        expect(new Set(await store.settle(items))).toEqual(new Set(items.length === 0 ? [] : ['ok']))
      }
    }
    await Promise.all([
      ...producers.map((store, i) => produce(store, `p${'x'.repeat(i)}`)),
      ...openTransactions.map((client, i) => produceOpenly(client, `t${i}`)),
      ...workers.map((store, i) => work(store, `w${i}`)),
    ])

    expect(done.length).toBe(new Set(done).size)
    expect(new Set(done)).toEqual(pushed)
    const { ready, scheduled, running: still, payloads } = (await producers[0]!.depth(['orders'])).depths[0]!
    expect(still + payloads).toBe(0)
    // An id that ended while a push held it, and which was rolled back, goes with the next claim.
    expect(ready + scheduled).toBeLessThanOrEqual(ids.length)
  }, 60_000)

  it('are claimed and end while a transaction that pushes to them is open, and its payloads come after its commit', async () => {
    const schema = 'ordered_open'
    const store = await storeIn(schema)
    const client = await connected()
    const job = { task: 'sync', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: 'first', queue: 'orders', jobs: [{ ...job, id: 'a', payload: 'v0' }] }])
    await client.query('BEGIN')
    await push(client, schema, [
      { id: 'b', payload: 'v1' },
      { id: 'a', payload: 'v1' },
    ])
    const claim = async () => (await store.claim([{ queue: 'orders', limit: 5 }], claimer('w'))).claims
    const handed = (claims: Awaited<ReturnType<typeof claim>>) =>
      claims.map(({ id, payloads }) => `${id}: ${payloads!.map(({ payload }) => payload).join(' ')}`)

    const before = await claim()
    expect(handed(before)).toEqual(['a: v0'])
    const [{ queue, id, fence } = expect.fail()] = before
    expect(await store.settle([{ queue, id, fence, kind: 'complete' }])).toEqual(['ok'])
    await client.query('COMMIT')

    const after: string[] = []
    while (after.length < 2) after.push(...handed(await claim()))
    expect(after.sort()).toEqual(['a: v1', 'b: v1'])
  })

  it('come from transactions of users in the order of their commits, and fail or wait in none of them', async () => {
    const schema = 'ordered_in'
    const store = await storeIn(schema)
    const [one, other] = [await connected(), await connected()]
    const job = { task: 'sync', priority: 0, rememberMs: 0 }
    const enqueueIn = (client: pg.Client, jobs: readonly { id: string; payload: string; delayMs?: number }[]) =>
      store.transactions.enqueue(client, { queue: 'orders', jobs: jobs.map((own) => ({ ...job, ...own })) })
    const claimed = async () => {
      const { claims } = await store.claim([{ queue: 'orders', limit: 5 }], claimer('w'))
      await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
      return claims.map(({ id, payloads }) => `${id}: ${payloads!.map(({ payload }) => payload).join(' ')}`)
    }
    for (const client of [one, other]) await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE')
    expect(
      await enqueueIn(one, [
        { id: 'a', payload: 'late' },
        { id: 'b', payload: 'v1' },
      ]),
    ).toEqual(['added', 'added'])
    expect(
      await enqueueIn(other, [
        { id: 'b', payload: 'v2' },
        { id: 'a', payload: 'early' },
        { id: 'c', payload: 'later', delayMs: 60_000 },
      ]),
    ).toEqual(['added', 'added', 'added'])
    await store.enqueue([{ callId: 'plain', queue: 'orders', jobs: [{ ...job, id: 'a', payload: 'first' }] }])

    expect(await claimed()).toEqual(['a: first'])
    await other.query('COMMIT')
    expect((await claimed()).sort()).toEqual(['a: early', 'b: v2'])
    await one.query('COMMIT')
    expect((await claimed()).sort()).toEqual(['a: late', 'b: v1'])
    expect((await store.depth(['orders'])).depths[0]!.scheduled).toBe(1)
  })

  it('stay in the inbox if a reshard sets out while a claim pushes them, until it has arrived', async () => {
    const schema = 'ordered_left'
    const [store, user, other] = [await storeIn(schema), await connected(), await connected()]
    await leaveInInbox(store, user, 'x')
    await other.query('BEGIN')
    await other.query(`SELECT ${schema}.set_out_1('orders', 2)`)
    const claiming = store.claim([{ queue: 'orders', limit: 5 }], claimer('w'))
    await lockWait(schema, 'claim_2')
    await other.query('COMMIT')

    expect((await claiming).claims).toEqual([])
    while ((await store.records.reshard('orders', 2)).more);
    const { claims } = await store.claim([{ queue: 'orders', limit: 5 }], claimer('w'))
    expect(claims.map(({ id }) => id)).toEqual(['x'])
  })

  it('are not lost if a process opens the queue with another merge while a claim pushes them', async () => {
    const schema = 'ordered_merge'
    const [store, opening] = [await storeIn(schema), await storeIn(schema)]
    const [user, other] = [await connected(), await connected()]
    await leaveInInbox(store, user, 'x')
    await other.query('BEGIN')
    await other.query(inSchema('SELECT pg_advisory_xact_lock(@lock + 7, qid) FROM @.queue', schema))
    const claiming = store.claim([{ queue: 'orders', limit: 5 }], claimer('w'))
    await lockWait(schema, 'claim_2')
    await opening.open([{ ...orders, merge: 'latest' }])
    await other.query('COMMIT')

    expect((await claiming).claims.map(({ id }) => id)).toEqual(['x'])
  })

  it('of a shard that runs one batch at a time are claimed while another claim asks other shards', async () => {
    const schema = 'ordered_apart'
    const [store, other] = [await storeIn(schema), await connected()]
    const solo = { ...orders, name: 'solo', exclusive: 'shard', shards: 3 } as const
    await store.open([solo])
    const inShard = (shard: number) =>
      Array.from({ length: 99 }, (_, i) => `id-${i}`).find((id) => shardOf(id, 3) === shard)!
    const job = { task: 'sync', priority: 0, rememberMs: 0, payload: '1' }
    await store.claim([{ queue: 'solo', limit: 5 }], claimer('w'))
    await store.enqueue([{ callId: 'one', queue: 'solo', jobs: [{ ...job, id: inShard(2) }] }])
    const claimOf = async (shard: number) =>
      (
        await other.query(
          `SELECT ${schema}.claim_2('other', ARRAY[qid], '{5}', '{NULL}', '{30000}', '{0}', '{true}', false, 1000000, 0, ${schema}.run()) AS answer
            FROM ${schema}.queue WHERE name = 'solo' AND shard = $1`,
          [shard],
        )
      ).rows[0].answer.asked[0]
    await other.query('BEGIN')
    expect(await claimOf(0)).toMatchObject({ jobs: null, busy: false })

    const { claims } = await store.claim([{ queue: 'solo', limit: 5 }], claimer('w'))
    expect(claims.map(({ id }) => id)).toEqual([inShard(2)])
    await store.enqueue([{ callId: 'two', queue: 'solo', jobs: [{ ...job, id: inShard(0) }] }])
    // The other claim may be about to take it: whoever asks again will see.
    const { claims: none, waits } = await store.claim([{ queue: 'solo', limit: 5, shard: 0 }], claimer('w'))
    expect([none, waits]).toEqual([[], []])
    await other.query('COMMIT')
    const { claims: next } = await store.claim([{ queue: 'solo', limit: 5, shard: 0 }], claimer('w'))
    expect(next.map(({ id }) => id)).toEqual([inShard(0)])
  })

  it('do not pile up payloads that the latest has replaced while nobody claims', async () => {
    const schema = 'ordered_latest'
    const store = await storeIn(schema)
    const client = await connected()
    await store.open([{ ...orders, merge: 'latest' }])
    for (let i = 0; i < 100; i++)
      await store.enqueue([
        {
          ...{ callId: `${i}`, queue: 'orders' },
          jobs: [{ id: 'a', payload: `v${i}`, task: 'sync', priority: 0, rememberMs: 0 }],
        },
      ])

    const { rows } = await client.query(`SELECT count(*)::int AS n FROM ${schema}.payload`)
    expect(rows[0].n).toBeLessThanOrEqual(32)
    const { claims } = await store.claim([{ queue: 'orders', limit: 1 }], claimer('w'))
    expect(claims[0]!.payloads!.map(({ payload }) => payload)).toEqual(['v99'])
  })
})
