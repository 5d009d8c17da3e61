import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresConnection } from '#src/stores/postgres/client/postgres-connection.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { stepLimit } from '#src/stores/rules/bounds.js'
import { lockWait, postgresDatabase, testClient } from '../../worker-postgres.js'

let url: string
const stores: PostgresStore[] = []
const connections: PostgresConnection[] = []
const queues = [
  { name: 'mail', kind: 'plain', order: 'fifo' },
  { name: 'rows', kind: 'plain', order: 'fifo' },
] as const

beforeAll(async () => {
  url = await postgresDatabase()
}, 60_000)
afterAll(async () => {
  for (const store of stores) await store.close()
  for (const connection of connections) await connection.close()
})

async function storeIn(schema: string): Promise<PostgresStore> {
  const store = new PostgresStore({ address: { ...postgresAddress(url), schema } })
  stores.push(store)
  await store.open(queues)
  return store
}

const by = (worker: string) => ({ worker, leaseMs: 30_000 })
const jobOf = (id: string) => ({ id, task: 'sum', payload: '1', priority: 0, rememberMs: 0 })
const ids = (count: number) => Array.from({ length: count }, (_, number) => number)

/** A join with this many members. */
async function addJoin(
  store: PostgresStore,
  id: string,
  size: number,
  { onDead = 'fail', ...how }: { onDead?: 'fail' | 'hold' | 'go-on'; cancelsRest?: true } = {},
  callId = id,
): Promise<void> {
  const rules = { onDead, keepsResults: true }
  const set = { name: 'all', queue: 'rows', ids: `${id}.all`, isMany: true, size, ...rules }
  const place = (number: number) => ({ join: { queue: 'mail', id }, set: 'all', number, ...rules })
  const members = ids(size).map((number) => ({ ...jobOf(`${id}.all.${number}`), memberOf: [place(number)] }))
  const join = { ...jobOf(id), join: { sets: [set], sealWithinMs: 60_000, ...how } }
  const answer = await store.joins.enqueue([
    { callId: `${callId} mail`, queue: 'mail', jobs: [join] },
    { callId: `${callId} rows`, queue: 'rows', jobs: members },
  ])
  expect(answer).toEqual({ outcome: 'added' })
}

async function claimRows(store: PostgresStore, worker: string, limit: number) {
  return (await store.claim([{ queue: 'rows', limit }], by(worker))).claims
}

const completed = ({ queue, id, fence }: { queue: string; id: string; fence: number }) => ({
  ...{ queue, id, fence, kind: 'complete' as const },
  result: { payload: `"${id}"`, onlyForJoins: true as const },
})

describe('joins on a Postgres store', () => {
  it('are ready once when the last members end in several processes at the same moment', async () => {
    const workers = await Promise.all(ids(4).map(() => storeIn('together')))
    for (const round of ids(25)) {
      const id = `join-${round}`
      await addJoin(workers[0]!, id, 4)
      const claims: Awaited<ReturnType<typeof claimRows>> = []
      for (const [i, store] of workers.entries()) claims.push((await claimRows(store, `w${i}`, 1))[0]!)
      await Promise.all(workers.map((store, i) => store.settle([completed(claims[i]!)])))

      const { claims: found } = await workers[0]!.claim([{ queue: 'mail', limit: 5 }], by('w0'))
      expect(found.map((claim) => claim.id)).toEqual([id])
      const ends = await workers[0]!.joins.ends({ queue: 'mail', id }, 'all', 0, 10)
      expect(ends.map(({ number, payload }) => [number, payload])).toEqual(
        ids(4).map((number) => [number, `"${id}.all.${number}"`]),
      )
      await workers[0]!.settle(found.map((claim) => ({ ...completed(claim), result: {} })))
    }
  })

  it('hear in a sweep of an end that could not be delivered, though its settle was answered', async () => {
    const store = await storeIn('undelivered')
    const other = new PostgresConnection(postgresAddress(url), 'undelivered')
    connections.push(other)
    await addJoin(store, 'join', 1)
    const claims = await claimRows(store, 'w', 1)
    await other.transaction('BEGIN', async (ask) => {
      await ask(`SELECT FROM undelivered.job WHERE id = 'join' FOR UPDATE`)
      expect(await store.settle(claims.map(completed))).toEqual(['ok'])
    })
    expect((await store.depth(['mail'])).depths[0]).toMatchObject({ waiting: 1, ready: 0 })

    await store.joins.sweep('w')

    expect((await store.depth(['mail'])).depths[0]).toMatchObject({ waiting: 0, ready: 1 })
  })

  it('hear in a sweep of ends whose process died before it delivered them', async () => {
    const store = await storeIn('late')
    const other = new PostgresConnection(postgresAddress(url), 'late')
    connections.push(other)
    await addJoin(store, 'join', 2)
    const claims = await claimRows(store, 'w', 2)
    const [row] = await other.query(`SELECT qid FROM late.queue WHERE name = 'rows'`)
    const values = [row![0], claims[0]!.fence, claims.map(({ id }) => id)]
    await other.query('SELECT late.complete_1($1, $2, $3, NULL, NULL)', values)
    expect((await store.depth(['mail'])).depths[0]!.waiting).toBe(1)

    await store.joins.sweep('w')

    const { waiting, ready } = (await store.depth(['mail'])).depths[0]!
    expect({ waiting, ready }).toEqual({ waiting: 0, ready: 1 })
  })

  it('leave nothing behind when they have completed, however many members they had', async () => {
    const store = await storeIn('large')
    const other = new PostgresConnection(postgresAddress(url), 'large')
    connections.push(other)
    await addJoin(store, 'small', 3)
    await store.settle((await claimRows(store, 'w', 3)).map(completed))
    await addJoin(store, 'large', 0)
    const { claims } = await store.claim([{ queue: 'mail', limit: 2 }], by('w'))
    expect(claims.map(({ id }) => id)).toEqual(['small', 'large'])
    // As if it had more members than one call deletes.
    await other.query(`UPDATE large.join_set SET added = 5000 WHERE ids = 'large.all'`)
    await other.query(
      `INSERT INTO large.join_end SELECT sid, g, 0 FROM large.join_set, generate_series(0, 2499) g WHERE ids = 'large.all'`,
    )
    await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
    for (let more = true; more; ) more = (await store.joins.sweep('w')).more

    for (const table of ['join_job', 'join_set', 'join_end', 'join_report', 'join_failed'])
      expect(await other.query(`SELECT count(*)::int FROM large.${table}`), table).toEqual([[0]])
  })
})

describe('a graph on a Postgres store', () => {
  it('has each of its queues forget its old calls, though nobody claims from them', async () => {
    const store = await storeIn('unclaimed')
    const other = new PostgresConnection(postgresAddress(url), 'unclaimed')
    connections.push(other)
    await other.query(`INSERT INTO unclaimed.call (at_ms, qid, ids) SELECT 1, qid, 'old' FROM unclaimed.queue`)
    await addJoin(store, 'join', 1)

    const old = () => other.query(`SELECT qid FROM unclaimed.call WHERE ids = 'old'`, [])
    await expect.poll(old, { timeout: 10_000 }).toEqual([])
  })
})

describe('the rest of a dead join on a Postgres store', () => {
  /** A join that cancels the rest dies with its first member. Returns the claims of those that run. */
  async function dies(store: PostgresStore, id: string, size: number, running: number) {
    await addJoin(store, id, size, { cancelsRest: true })
    const [first, ...others] = await claimRows(store, 'w', 1 + running)
    const { queue, fence } = first!
    await store.settle([{ queue, id: first!.id, fence, kind: 'bury', reason: 'broken', error: 'broken' }])
    return others
  }
  const leftOf = async (store: PostgresStore) => {
    const { ready, running } = (await store.depth(['rows'])).depths[0]!
    return { ready, running }
  }

  it('is cancelled by one sweep but for a member that a transaction of a user has locked, and that one later', async () => {
    const store = await storeIn('locked')
    const user = await testClient(url)
    const [held] = await dies(store, 'first', 2, 1)
    await dies(store, 'second', 2, 0)
    const { queue, id, fence } = held!
    await user.query('BEGIN')
    expect(await store.transactions.complete(user, { queue, id, fence })).toBe(true)

    expect((await store.joins.sweep('w')).more).toBe(false)
    expect(await leftOf(store)).toEqual({ ready: 0, running: 1 })
    await user.query('ROLLBACK')
    await store.joins.sweep('w')
    expect(await store.extend([{ queue, id, fence, leaseMs: 30_000 }])).toEqual(['cancel'])
  })

  it('is cancelled by several sweeps if it is more than one step', async () => {
    const store = await storeIn('much')
    await dies(store, 'small', 2, 1)
    await dies(store, 'large', stepLimit + 50, 0)
    let sweeps = 1
    for (; (await store.joins.sweep('w')).more; sweeps++);

    expect(sweeps).toBeLessThan(5)
    expect(await leftOf(store)).toEqual({ ready: 0, running: 1 })
  })
})

describe('reports to a join on a Postgres store', () => {
  /** A join, and processes that die, or are slow, between the commit of what becomes of a member and its report. */
  async function scene(schema: string, size: number, onDead: 'hold' | 'go-on') {
    const store = await storeIn(schema)
    const other = new PostgresConnection(postgresAddress(url), schema)
    connections.push(other)
    await addJoin(store, 'join', size, { onDead })
    const [[qid] = []] = await other.query(`SELECT qid FROM ${schema}.queue WHERE name = 'rows'`)
    const unheard = async (call: string, values: readonly unknown[]) =>
      (await other.query(`SELECT ${schema}.${call}`, values))[0]![0]
    return {
      store,
      /** The next member dies, and the join hears of it. */
      dies: async () => {
        const [claim] = await claimRows(store, 'w', 1)
        const { queue, id, fence } = claim!
        await store.settle([{ queue, id, fence, kind: 'bury', reason: 'broken', error: 'broken' }])
      },
      diesUnheard: async () => {
        const [claim] = await claimRows(store, 'w', 1)
        const { id, fence } = claim!
        const end = { id, fence, to: 'dead', attempt: 1, crashes: 0, error: 'broken', reason: 'broken' }
        await unheard('ends_1($1, $2)', [qid, JSON.stringify([end])])
      },
      completesUnheard: async () => {
        const [claim] = await claimRows(store, 'w', 1)
        await unheard('complete_1($1, $2, $3, NULL, NULL)', [qid, claim!.fence, [claim!.id]])
      },
      /** Returns the number of the report. */
      revivedUnheard: async (id: string) => ((await unheard('revive_1($1, $2)', [qid, [id]])) as [number, number])[1],
      /** The slow process delivers it. */
      deliver: (from: number) => unheard('deliver_1($1, 1000)', [from]),
      completes: async () => store.settle((await claimRows(store, 'w', 1)).map(completed)),
      counts: async () => {
        const { completed: done, dead } = (await store.joins.look({ queue: 'mail', id: 'join' }))!.sets[0]!.counts
        return { completed: done, dead }
      },
      ready: async () => (await store.claim([{ queue: 'mail', limit: 5 }], by('w'))).claims.map(({ id }) => id),
    }
  }

  it('tell it of the end of a revived member also if that comes before the report of the revival', async () => {
    const { dies, revivedUnheard, completes, deliver, counts, ready } = await scene('revived', 1, 'hold')
    await dies()
    const told = await revivedUnheard('join.all.0')
    await completes()
    await deliver(told)

    expect(await counts()).toEqual({ completed: 1, dead: 0 })
    expect(await ready()).toEqual(['join'])
  })

  it('tell it of a second death also if that comes before the report of the revival', async () => {
    const { store, dies, revivedUnheard, deliver, counts, ready } = await scene('dead_again', 2, 'go-on')
    await dies()
    const told = await revivedUnheard('join.all.0')
    const [other, revived] = await claimRows(store, 'w', 2)
    const { queue, id, fence } = revived!
    await store.settle([{ queue, id, fence, kind: 'bury', reason: 'broken', error: 'again' }])
    await deliver(told)
    expect(await counts()).toEqual({ completed: 0, dead: 1 })
    await store.settle([completed(other!)])

    expect(await ready()).toEqual(['join'])
  })

  it('tell it of a revival before a completion that would be the last one', async () => {
    const { dies, revivedUnheard, completes, counts, ready } = await scene('revived_first', 2, 'go-on')
    await dies()
    await revivedUnheard('join.all.0')
    await completes()
    expect(await counts()).toEqual({ completed: 1, dead: 0 })
    await completes()

    expect(await ready()).toEqual(['join'])
  })

  it('tell it of a death before the revival also if the process died that should have delivered it', async () => {
    const { store, diesUnheard, completes, counts, ready } = await scene('unheard_death', 1, 'hold')
    await diesUnheard()
    await store.records.morgue.revive('rows', { ids: ['join.all.0'] })
    await store.joins.sweep('w')
    expect(await counts()).toEqual({ completed: 0, dead: 0 })
    await completes()

    expect(await ready()).toEqual(['join'])
  })

  it('come in their order from one sweep, however many members have completed', async () => {
    const { store, dies, revivedUnheard, completesUnheard, counts, ready } = await scene('swept', 2, 'hold')
    await dies()
    await completesUnheard()
    await revivedUnheard('join.all.0')
    await completesUnheard()
    await store.joins.sweep('w')

    expect(await counts()).toEqual({ completed: 2, dead: 0 })
    expect(await ready()).toEqual(['join'])
  })
})

describe('a join of a later life on a Postgres store, whose members have the ids of those of the earlier one,', () => {
  /** A member of the earlier join has ended, and its process died before it delivered the report. */
  async function replaced(
    schema: string,
    end: (qid: unknown, claim: { id: string; fence: number }) => [string, ...unknown[]],
  ) {
    const store = await storeIn(schema)
    const other = new PostgresConnection(postgresAddress(url), schema)
    connections.push(other)
    await addJoin(store, 'join', 1)
    const [claim] = await claimRows(store, 'w', 1)
    const [[qid] = []] = await other.query(`SELECT qid FROM ${schema}.queue WHERE name = 'rows'`)
    const [call, ...values] = end(qid, claim!)
    await other.query(`SELECT ${schema}.${call}`, values)
    expect((await store.records.delete('mail', { ids: ['join'] })).changed).toBe(1)
    await addJoin(store, 'join', 1, {}, 'again')
    await store.joins.sweep('w')
    return store
  }
  const endsOf = async (store: PostgresStore) =>
    (await store.joins.ends({ queue: 'mail', id: 'join' }, 'all', 0, 10)).map(({ number, fate }) => `${number} ${fate}`)

  it('does not hear that an earlier one has completed', async () => {
    const store = await replaced('later_completed', (qid, { id, fence }) => [
      'complete_1($1, $2, $3, NULL, NULL)',
      ...[qid, fence, [id]],
    ])
    expect(await endsOf(store)).toEqual([])
    expect((await store.depth(['mail'])).depths[0]).toMatchObject({ waiting: 1, ready: 0 })
    await store.settle((await claimRows(store, 'w', 1)).map(completed))
    expect(await endsOf(store)).toEqual(['0 completed'])
    expect((await store.depth(['mail'])).depths[0]).toMatchObject({ waiting: 0, ready: 1 })
  })

  it('does not die because an earlier one was cancelled', async () => {
    const store = await replaced('later_cancelled', (qid, { id, fence }) => [
      'ends_1($1, $2)',
      ...[qid, JSON.stringify([{ id, fence, to: 'cancelled', attempt: 1, crashes: 0 }])],
    ])
    expect(await endsOf(store)).toEqual([])
    expect((await store.depth(['mail'])).depths[0]).toMatchObject({ waiting: 1, dead: 0 })
  })
})

describe('signals on a Postgres store', () => {
  it('reach a job that begins to wait at the same moment', async () => {
    const [worker, sender] = [await storeIn('signals'), await storeIn('signals')]
    for (const round of ids(50)) {
      const id = `job-${round}`
      await worker.enqueue([{ callId: id, queue: 'mail', jobs: [jobOf(id)] }])
      const [claim] = (await worker.claim([{ queue: 'mail', limit: 1 }], by('w'))).claims
      const { queue, fence } = claim!
      const [answer] = await Promise.all([
        sender.steps.signal({ queue, id }, { name: 'go' }),
        worker.settle([{ queue, id, fence, kind: 'wait', signal: 'go' }]),
      ])
      expect(['kept', 'delivered']).toContain(answer)

      const [again] = (await worker.claim([{ queue: 'mail', limit: 1 }], by('w'))).claims
      expect(again?.id).toBe(id)
      await worker.settle([{ queue, id, fence: again!.fence, kind: 'complete' }])
    }
  })

  it.each([
    [
      'reach',
      'signal_1',
      (store: PostgresStore, job: { queue: string; id: string }) => store.steps.signal(job, { name: 'go' }),
      'kept',
    ],
    [
      'forget a step of',
      'forget_step_2',
      (store: PostgresStore, job: { queue: string; id: string }) => store.steps.forget(job, 'pay', 'step'),
      true,
    ],
  ])('%s a dead job that is revived at the same moment', async (_, call, send, answer) => {
    const schema = `revived_${call}`
    const [store, other] = [await storeIn(schema), await testClient(url)]
    await store.enqueue([{ callId: 'one', queue: 'mail', jobs: [jobOf('a')] }])
    const [{ queue, id, fence } = expect.fail()] = (await store.claim([{ queue: 'mail', limit: 1 }], by('w'))).claims
    await store.steps.keep({ queue, id, fence }, { kind: 'step', name: 'pay' }, 30_000)
    await store.settle([{ queue, id, fence, kind: 'bury', reason: 'broken', error: 'broken' }])
    await other.query('BEGIN')
    await other.query(`SELECT ${schema}.revive_1((SELECT qid FROM ${schema}.queue WHERE name = 'mail'), '{a}')`)
    const sent = send(store, { queue, id })
    await lockWait(schema, call)
    await other.query('COMMIT')

    expect(await sent).toBe(answer)
  })
})
