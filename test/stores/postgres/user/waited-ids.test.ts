/** Ids that a transaction which is still open has: it ends a job of such an id, or adds one. */

import { randomUUID } from 'node:crypto'
import { defineTask, millrace } from 'millrace'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import type { MakePostgresClient, PostgresClient } from '#src/stores/postgres/client/postgres-driver.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { columnsOf } from '#src/stores/postgres/work/postgres-enqueue.js'
import { lentPostgresAddress, testClient } from '../../../worker-postgres.js'

const queue = 'mail'
const worker = { worker: 'worker01', leaseMs: 30_000 }
const job = (id: string) => ({ id, task: 'send', payload: '{}', priority: 0, rememberMs: 60_000 })
const call = (id: string) => ({ callId: `call of ${id}`, queue, jobs: [job(id)] })

/** Two processes on one queue, and a transaction that is open. */
async function scene({ begin = 'BEGIN', kind = 'plain' }: { begin?: string; kind?: 'plain' | 'ordered' } = {}) {
  const address = postgresAddress(await lentPostgresAddress())
  let refused = 0
  const makeClient: MakePostgresClient = (config) => {
    const client = new pg.Client(config)
    const send = client.query.bind(client) as (asked: unknown) => Promise<unknown>
    const query = (asked: unknown) =>
      send(asked).catch((error: { code?: string }) => {
        if (error.code === '55P03') refused += 1
        throw error
      })
    return Object.assign(client, { query }) as PostgresClient
  }
  const opened = async () => {
    const store = new PostgresStore({ address, makeClient })
    onTestFinished(() => store.close())
    await store.open([{ name: queue, kind, order: 'fifo', maxCrashes: 3, dead: { ageMs: 86_400_000 } }])
    return store
  }
  const [store, other] = [await opened(), await opened()]
  const [user, admin] = [await testClient(), await testClient()]
  await user.query(begin)
  const [{ pid }] = (await user.query('SELECT pg_backend_pid() AS pid')).rows as [{ pid: number }]
  const isWaitedFor = () =>
    expect
      .poll(
        async () =>
          (await admin.query('SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))', [pid])).rowCount,
        { interval: 5 },
      )
      .toBeGreaterThan(0)
  const claimed = async (id: string) => {
    await store.enqueue([{ ...call(id), callId: `first of ${id}` }])
    return (await store.claim([{ queue, limit: 1 }], worker)).claims[0]!
  }
  const ask = async (text: string) => (await admin.query(text.replaceAll('@.', `${address.schema}.`))).rows
  /** How many calls of the processes have waited for a lock in vain. */
  const refusedCalls = () => refused
  return { opened, store, other, user, claimed, isWaitedFor, refused: refusedCalls, ask, schema: address.schema! }
}

describe('an enqueue of an id', () => {
  it('whose job ends in the transaction finds it remembered after the commit', async () => {
    const { store, other, user, claimed, isWaitedFor } = await scene()
    const { id, fence } = await claimed('a')
    expect(await store.transactions.complete(user, { queue, id, fence })).toBe(true)
    const enqueued = other.enqueue([{ ...call('b'), jobs: [job('a'), job('b')] }])
    await isWaitedFor()
    await user.query('COMMIT')

    expect(await enqueued).toEqual([['duplicate', 'added']])
    const { claims } = await other.claim([{ queue, limit: 9 }], worker)
    expect(claims.map((claim) => claim.id)).toEqual(['b'])
    expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
  })

  it('whose job is buried in the transaction finds it in the morgue, from where it comes back', async () => {
    const { store, other, user, claimed, isWaitedFor, schema } = await scene()
    const { id, fence } = await claimed('a')
    const end = { id, fence, to: 'dead', attempt: 1, crashes: 0, error: 'no', reason: 'exhausted' }
    await user.query(`SELECT ${schema}.ends_1(qid, $1) FROM ${schema}.queue`, [JSON.stringify([end])])
    const enqueued = other.enqueue([call('a')])
    await isWaitedFor()
    await user.query('COMMIT')

    expect(await enqueued).toEqual([['dead']])
    expect(await store.records.morgue.revive(queue, 'all')).toEqual({ changed: 1, more: false })
    expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
  })

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'fails a transaction with %s if the id was remembered since that began, and no other',
    async (isolation) => {
      const { store, user, claimed } = await scene({ begin: `BEGIN ISOLATION LEVEL ${isolation}` })
      const { id, fence } = await claimed('a')
      expect(await store.settle([{ queue, id, fence, kind: 'complete' }])).toEqual(['ok'])
      expect(await store.transactions.enqueue(user, { queue, jobs: [job('b')] })).toEqual(['added'])
      await expect(store.transactions.enqueue(user, { queue, jobs: [job('a')] })).rejects.toMatchObject({
        code: '40001',
      })
      await user.query('ROLLBACK')
      await user.query(`BEGIN ISOLATION LEVEL ${isolation}`)
      expect(await store.transactions.enqueue(user, { queue, jobs: [job('a')] })).toEqual(['duplicate'])
      expect(await store.transactions.enqueue(user, { queue, jobs: [job('b')] })).toEqual(['added'])
      await user.query('COMMIT')

      const { claims } = await store.claim([{ queue, limit: 9 }], worker)
      expect(claims.map((claim) => claim.id)).toEqual(['b'])
      expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
    },
  )
})

describe('while a transaction is open that has enqueued an id again', () => {
  it.each([
    ['which is no longer remembered', { kind: 'complete' }, 'until_ms = 1'],
    [
      'of which a result was kept',
      { kind: 'complete', result: { payload: '1', keepMs: 60_000 } },
      'until_ms = 1, remember_ms = 0',
    ],
    ['which was dead for long', { kind: 'bury' }, 'finished_ms = 1'],
  ] as const)('%s, other jobs of the queue end and are recovered', async (_, end, late) => {
    const { opened, store, other, user, claimed, ask } = await scene()
    const ended = async (id: string) => ({ queue, id, fence: (await claimed(id)).fence })
    expect(
      await store.settle([
        { ...(await ended('a')), ...end },
        { ...(await ended('b')), ...end },
      ]),
    ).toEqual(['ok', 'ok'])
    await ask(`UPDATE @.ended SET ${late}`)
    expect(await store.transactions.enqueue(user, { queue, jobs: [job('a')] })).toEqual(['added'])
    expect(await other.settle([{ ...(await ended('c')), kind: 'complete' }])).toEqual(['ok'])
    // What is too old and not locked has gone.
    expect(await ask('SELECT id FROM @.ended ORDER BY id')).toEqual([{ id: 'a' }, { id: 'c' }])
    await ended('d')
    await ask('UPDATE @.bunch SET lease_ms = 0')
    await ask('UPDATE @.queue_state SET lease_floor = 0')
    const { crashed } = await (await opened()).claim([{ queue, limit: 1 }], worker)
    expect(crashed.map(({ id }) => id)).toEqual(['d'])
    await user.query('COMMIT')

    const { claims } = await store.claim([{ queue, limit: 1 }], worker)
    expect(claims.map(({ id }) => id)).toEqual(['a'])
    expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
  })
})

it('a settle that is committed is answered, though what is to follow it fails', async () => {
  const { store, other, user, claimed, ask, schema } = await scene()
  const [a, b] = [await claimed('a'), await claimed('b')]
  // Nothing can be trimmed.
  await user.query(`LOCK TABLE ${schema}.expected`)
  expect(await other.settle([{ queue, id: 'a', fence: a.fence, kind: 'complete' }])).toEqual(['ok'])
  await user.query('COMMIT')
  await ask('UPDATE @.ended SET until_ms = 1')
  expect(await other.settle([{ queue, id: 'b', fence: b.fence, kind: 'complete' }])).toEqual(['ok'])

  expect(await ask('SELECT id FROM @.ended')).toEqual([{ id: 'b' }])
  expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
})

it('a call that is sent again while it still waits for its commit has the answers of the first time', async () => {
  const { store, user, isWaitedFor, schema } = await scene()
  await store.enqueue([call('b')])
  const jobs = ['a', 'b', 'c', 'a'].map(job)
  const values = [...columnsOf(jobs), false, ['call'], [jobs.length]]
  const places = values.map((_, i) => `$${i + 1}`)
  await user.query(`SELECT ${schema}.enqueue_1((SELECT qid FROM ${schema}.queue), ${places.join(', ')})`, values)
  const again = () => store.enqueue([{ callId: 'call', isResent: true, queue, jobs }])
  const answers = again()
  await isWaitedFor()
  await user.query('COMMIT')

  expect(await answers).toEqual([['added', 'duplicate', 'added', 'duplicate']])
  expect(await again()).toEqual([['added', 'duplicate', 'added', 'duplicate']])
  expect((await store.depth([queue])).depths[0]).toMatchObject({ ready: 3 })
})

it.each([
  ['plain', 'duplicate', 0],
  ['ordered', 'added', 20],
] as const)(
  'others do not wait for many calls of a queue that is %s, sent again each by itself, whose ids it has',
  async (kind, answer, ready) => {
    const { store, user, isWaitedFor, refused } = await scene({ kind })
    const ids = Array.from({ length: 20 }, (_, i) => `id ${i}`)
    await store.enqueue([{ callId: 'first', queue, jobs: ids.map(job) }])
    const { claims } = await store.claim([{ queue, limit: 20 }], worker)
    for (const { id, fence } of claims) expect(await store.transactions.complete(user, { queue, id, fence })).toBe(true)
    const enqueued = ids.map(async (id) => (await store.enqueue([{ ...call(id), isResent: true }]))[0])
    await isWaitedFor()
    const before = refused()
    expect((await store.depth([queue])).depths[0]).toMatchObject({ running: 20 })
    expect(refused() - before).toBeLessThan(5)
    await user.query('COMMIT')

    expect(await Promise.all(enqueued)).toEqual(ids.map(() => [answer]))
    expect((await store.depth([queue])).depths[0]).toMatchObject({ running: 0, ready })
  },
)

it('a payload that is sent again while it still waits for its commit is pushed once', async () => {
  const { store, user, isWaitedFor, schema } = await scene({ kind: 'ordered' })
  const columns = [['a'], ['send'], ['{}'], [1], [randomUUID()], ['call'], [1]]
  await user.query(
    `SELECT ${schema}.push_1((SELECT qid FROM ${schema}.queue), 'all', $1, $2, $3, NULL, NULL, NULL, NULL, $4, NULL, $5, NULL, $6, $7)`,
    columns,
  )
  const again = () => store.enqueue([{ callId: 'call', isResent: true, queue, jobs: [job('a')] }])
  const answers = again()
  await isWaitedFor()
  await user.query('COMMIT')

  expect(await answers).toEqual([['added']])
  expect(await again()).toEqual([['added']])
  const { claims } = await store.claim([{ queue, limit: 9 }], worker)
  expect(claims.map(({ payloads }) => payloads?.length)).toEqual([1])
})

it.each([{}, { maxPending: 10 }])(
  'an enqueue of another id in the same tick does not wait for it (%o)',
  async (limits) => {
    const send = defineTask({ name: 'send', queue, run: async (_: number) => {} })
    const mill = millrace({ store: await lentPostgresAddress(), tasks: [send], queues: { [queue]: limits } })
    onTestFinished(() => mill.close())
    await mill.ready()
    const user = await testClient()
    await user.query('BEGIN')
    await mill.enqueueIn(user, send, 1, { id: 'a' })
    const [a, ...others] = [{ id: 'a' }, { id: 'b' }, {}].map((options) => mill.enqueue(send, 1, options))
    expect((await Promise.all(others)).map(({ outcome }) => outcome)).toEqual(['added', 'added'])
    await user.query('COMMIT')

    expect((await a!).outcome).toBe('duplicate')
    expect((await mill.depths([queue]))[0]).toMatchObject({ ready: 3 })
  },
)
