/**
 * A Postgres store behind a transaction that stays open, which keeps every dead row: what calls read does not grow with what has been
 * done since. Counted are the entries that the indexes return, dead ones too.
 */

import { expect, it, onTestFinished, vi } from 'vitest'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { postgresStoreAddress, testClient } from '../../worker-postgres.js'

const queue = 'mail'
const by = { worker: 'w', leaseMs: 30_000 }
/** Rounds that are the past, and rounds that are counted. */
const [past, rounds] = [300, 20]

async function scene(limits: Pick<QueueSettings, 'maxRunning'> = {}) {
  const address = postgresAddress(await postgresStoreAddress())
  const schema = address.schema!
  const opened = async () => {
    const store = new PostgresStore({ address })
    onTestFinished(() => store.close())
    await store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...limits }])
    return store
  }
  const [eyes, reader] = [await testClient(), await testClient()]
  const ask = async (text: string) => (await eyes.query(text.replaceAll('@.', `${schema}.`))).rows
  /** A server tells what a connection did once that has ended. */
  const over = async (store: PostgresStore) => {
    await store.close()
    await vi.waitFor(async () =>
      expect(
        await ask(`SELECT query FROM pg_stat_activity WHERE query LIKE '%"${schema}".%' AND pid <> pg_backend_pid()`),
      ).toEqual([]),
    )
  }
  /** How much `work` reads of the indexes of a table, and how often it updates one of its rows. */
  const seen = async (table: string) => {
    const [row] =
      await ask(`SELECT n_tup_upd::int AS updates, (SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes i
      WHERE i.relid = t.relid) AS reads FROM pg_stat_user_tables t WHERE t.relid = '@.${table}'::regclass`)
    return row as { readonly updates: number; readonly reads: number }
  }
  const during = async (table: string, work: (store: PostgresStore) => Promise<void>) => {
    const before = await seen(table)
    const store = await opened()
    await work(store)
    await over(store)
    const after = await seen(table)
    return { updates: after.updates - before.updates, reads: after.reads - before.reads }
  }
  /** From now on dead rows stay. */
  const keep = async () => {
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT 1')
  }
  /** The clock of the store goes so much before that of the server. */
  const goBefore = (ms: number) =>
    ask(`CREATE OR REPLACE FUNCTION @.us() RETURNS bigint LANGUAGE sql VOLATILE AS $$
      SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + ${ms * 1_000} $$`)
  return { opened, during, keep, goBefore, over, ask }
}

let calls = 0

async function enqueued(store: PostgresStore): Promise<void> {
  calls += 1
  const job = { id: `job-${calls}`, task: 't', payload: '{}', priority: 0, rememberMs: 0 }
  await store.enqueue([{ callId: `call-${calls}`, queue, jobs: [job], hasNewIds: true }])
}

/** A job comes while somebody waits, and is worked off. */
async function workedOff(store: PostgresStore): Promise<void> {
  const waiting = store.wait([queue], 60_000, new AbortController().signal)
  await enqueued(store)
  await waiting
  await claimed(store)
}

async function claimed(store: PostgresStore): Promise<void> {
  const { claims } = await store.claim([{ queue, limit: 10 }], by)
  await store.settle(claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'complete' })))
}

it('a wait and its ring walk over few of the waits before them', async () => {
  const { during, keep, opened, over } = await scene()
  await over(await opened())
  await keep()
  await during('waiter', async (store) => {
    for (let n = 0; n < past; n += 1) await workedOff(store)
  })
  const { reads } = await during('waiter', async (store) => {
    for (let n = 0; n < rounds; n += 1) await workedOff(store)
  })

  expect(reads / rounds).toBeLessThan(past / 2)
})

it('a claim leaves no row of its queue behind, so that nobody walks from one to the next', async () => {
  const { during, opened, over } = await scene()
  await over(await opened())
  const { updates } = await during('queue', async (store) => {
    for (let n = 0; n < rounds; n += 1) await workedOff(store)
  })

  expect(updates).toBe(0)
})

it('a look for the end of the next lease passes over none of the leases that ended with their jobs', async () => {
  const { during, keep, goBefore, opened, over } = await scene()
  await over(await opened())
  await keep()
  await during('bunch', async (store) => {
    for (let n = 0; n < past; n += 1) {
      await enqueued(store)
      await claimed(store)
    }
  })
  await goBefore(5_000)
  // Its upkeep is done behind its first claim.
  await during('bunch', claimed)
  const { reads } = await during('bunch', async (store) => {
    for (let n = 0; n < rounds; n += 1) await store.wait([queue], 1, new AbortController().signal)
  })

  expect(reads).toBeLessThan(past)
})

it('a look for the jobs of a limited queue passes over few that were worked off', async () => {
  const { during, keep, goBefore, opened, over } = await scene({ maxRunning: 1_000 })
  await over(await opened())
  await keep()
  const workOff = (times: number) => async (store: PostgresStore) => {
    for (let n = 0; n < times; n += 1) {
      await enqueued(store)
      await claimed(store)
    }
  }
  await during('job', workOff(past))
  await goBefore(5_000)
  // Its upkeep is done behind its first claim.
  await during('job', claimed)
  const { reads } = await during('job', workOff(rounds))

  expect(reads / rounds).toBeLessThan(past)
})

it('a completion of a member passes over few of the reports that were delivered before it', async () => {
  const { during, keep, opened, over } = await scene()
  const rules = { onDead: 'fail', keepsResults: false } as const
  const size = past + rounds
  const set = { name: 'all', queue, ids: 'all', isMany: true, size, ...rules }
  const own = { task: 't', payload: '{}', priority: 0, rememberMs: 0 }
  const jobs = Array.from({ length: size }, (_, number) => ({
    ...{ ...own, id: `all.${number}` },
    memberOf: [{ join: { queue, id: 'join' }, set: 'all', number, ...rules }],
  }))
  const join = { ...own, id: 'join', join: { sets: [set], sealWithinMs: 60_000 } }
  const store = await opened()
  await store.joins.enqueue([{ callId: 'graph', queue, jobs: [join, ...jobs] }])
  await over(store)
  await keep()
  const complete = (times: number) => async (worker: PostgresStore) => {
    for (let n = 0; n < times; n += 1) {
      const { claims } = await worker.claim([{ queue, limit: 1 }], by)
      await worker.settle(claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'complete' })))
    }
  }
  await during('join_report', complete(past))
  const { reads } = await during('join_report', complete(rounds))

  expect(reads / rounds).toBeLessThan(past / 10)
})

it('a lease that is shorter than all before ends in time', async () => {
  const { opened, goBefore } = await scene()
  const [store, other] = [await opened(), await opened()]
  await enqueued(store)
  await claimed(store)
  await enqueued(store)
  const { claims } = await store.claim([{ queue, limit: 1 }], { ...by, leaseMs: 3_000 })
  await goBefore(4_000)
  const { crashed } = await other.claim([{ queue, limit: 1 }], by)

  expect(crashed.map(({ id }) => id)).toEqual(claims.map(({ id }) => id))
})

it('a lease that was committed late is found by the next whole look', async () => {
  const { opened, ask } = await scene()
  const [store, looking, other] = [await opened(), await opened(), await opened()]
  await enqueued(store)
  const { claims } = await store.claim([{ queue, limit: 1 }], by)
  // Behind the upkeep of that claim.
  await store.depth([queue])
  await ask('UPDATE @.bunch SET lease_ms = 1')
  await looking.claim([{ queue, limit: 1 }], by)
  await looking.depth([queue])
  const { crashed } = await other.claim([{ queue, limit: 1 }], by)

  expect(crashed.map(({ id }) => id)).toEqual(claims.map(({ id }) => id))
})

it('a job that is committed late is found by the next whole look', async () => {
  const { opened, goBefore } = await scene()
  const [store, looking, other] = [await opened(), await opened(), await opened()]
  const user = await testClient()
  await user.query('BEGIN')
  const late = { id: 'late', task: 't', payload: '{}', priority: 0, rememberMs: 0 }
  await store.transactions.enqueue(user, { queue, jobs: [late] })
  await enqueued(store)
  await claimed(store)
  await goBefore(5_000)
  await claimed(looking)
  await user.query('COMMIT')
  const claim = async () => (await other.claim([{ queue, limit: 1 }], by)).claims.map(({ id }) => id)

  expect([await claim(), await claim()]).toEqual([[], ['late']])
})
