/** What happens to a job between the look of a call on a Postgres store and the change that follows it. */

import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { hourly, hourMs, schedulesOf, tickOf } from '#src/store-testing/contract/scenes/schedule-words.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import { type PostgresAddress, postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import type { MakePostgresClient, PostgresClient } from '#src/stores/postgres/client/postgres-driver.js'
import { PostgresStore } from '#src/stores/postgres/postgres-store.js'
import { columnsOf } from '#src/stores/postgres/work/postgres-enqueue.js'
import { lentPostgresAddress, testClient } from '../../worker-postgres.js'

const queue = 'mail'
const by = (worker: string) => ({ worker, leaseMs: 30_000 })
const job = (id: string, more: Partial<NewJob> = {}): NewJob => ({
  ...{ id, task: 'send', payload: '1', priority: 0, rememberMs: 0 },
  ...more,
})

/** A call that waits before it leaves. */
interface HeldCall {
  readonly reached: Promise<void>
  go(): void
}

/** A store, and a way to hold its next call of a function of the database, or its next insert into a table. */
function holdingStore(address: PostgresAddress) {
  const held = new Map<string, { reach(): void; readonly gone: Promise<void> }>()
  const makeClient: MakePostgresClient = (config) => {
    const client = new pg.Client(config) as PostgresClient
    const send = client.query.bind(client) as (asked: { readonly text: string }) => Promise<unknown>
    const query = (asked: { readonly text: string }) => {
      const name = /(?:"\.|^INSERT INTO )(\w+) ?\(/.exec(asked.text)?.[1] ?? ''
      const hold = held.get(name)
      if (hold === undefined) return send(asked)
      held.delete(name)
      hold.reach()
      return hold.gone.then(() => send(asked))
    }
    return Object.assign(client, { query }) as PostgresClient
  }
  const hold = (name: string): HeldCall => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => {
      go = resolve
    })
    const reached = new Promise<void>((resolve) => held.set(name, { reach: resolve, gone }))
    return { reached, go }
  }
  return { store: new PostgresStore({ address, makeClient }), hold }
}

const kinds = [
  ['a plain', 'plain'],
  ['an ordered', 'ordered'],
] as const

let calls = 0

/** Two processes on a queue; calls of the other can be held. */
async function scene(kind: 'plain' | 'ordered' = 'plain') {
  const address = postgresAddress(await lentPostgresAddress())
  const store = new PostgresStore({ address })
  const { store: other, hold } = holdingStore(address)
  for (const one of [store, other]) {
    onTestFinished(() => one.close())
    await one.open([{ name: queue, kind, order: 'fifo', maxCrashes: 3, dead: {} }])
  }
  const admin = await testClient()
  const ask = async (text: string) => (await admin.query(text.replaceAll('@.', `${address.schema}.`))).rows
  const enqueue = async (...jobs: NewJob[]) => {
    calls += 1
    return (await store.enqueue([{ callId: `call-${calls}`, queue, jobs }]))[0]!
  }
  const claim = async () => (await store.claim([{ queue, limit: 9 }], by('worker01'))).claims
  const claimFirst = async () => (await claim())[0]!
  return {
    address,
    store,
    other,
    hold: (name = kind === 'plain' ? 'ends_1' : 'end_ids_1') => hold(name),
    ask,
    enqueue,
    claim,
    claimFirst,
  }
}

type Scene = Awaited<ReturnType<typeof scene>>

it('a job that came in the place of one that had expired is not ended with it', async () => {
  const { other, hold, ask, enqueue } = await scene()
  await enqueue(job('a', { expiresMs: 60_000 }))
  await ask('UPDATE @.job SET expires_ms = 1')
  const end = hold()
  const claiming = other.claim([{ queue, limit: 9 }], by('worker02'))
  await end.reached
  expect(await enqueue(job('a', { payload: '2', expiresMs: 60_000, ifWaiting: 'replace' }))).toEqual(['replaced'])
  end.go()

  const { expired, claims } = await claiming
  expect(expired).toBeUndefined()
  expect(claims).toMatchObject([{ id: 'a', payload: '2' }])
})

it('nor is one that was enqueued after somebody else had ended that', async () => {
  const { store, other, hold, ask, enqueue } = await scene()
  await enqueue(job('a', { expiresMs: 60_000 }))
  await ask('UPDATE @.job SET expires_ms = 1')
  const end = hold()
  const claiming = other.claim([{ queue, limit: 9 }], by('worker02'))
  await end.reached
  const { expired } = await store.claim([{ queue, limit: 9 }], by('worker01'))
  expect(expired).toMatchObject([{ id: 'a' }])
  expect(await enqueue(job('a', { payload: '2', ifWaiting: 'replace' }))).toEqual(['added'])
  end.go()

  expect(await claiming).toMatchObject({ claims: [{ id: 'a', payload: '2' }] })
})

it.each(kinds)(
  'a job of %s queue that failed between the look of an action and its change keeps what it has failed with',
  async (_, kind) => {
    const { store, other, hold, enqueue, claim, claimFirst } = await scene(kind)
    await enqueue(job('a', { delayMs: 60_000 }))
    const end = hold()
    const run = other.records.runNow(queue, { ids: ['a'] })
    await end.reached
    expect(await store.records.runNow(queue, { ids: ['a'] })).toEqual({ changed: 1, more: false })
    const { fence } = await claimFirst()
    expect(await store.settle([{ queue, id: 'a', fence, kind: 'retry', delayMs: 60_000, error: 'no' }])).toEqual(['ok'])
    end.go()
    expect(await run).toEqual({ changed: 1, more: false })

    expect(await claim()).toMatchObject([{ id: 'a', attempt: 2, error: 'no' }])
  },
)

it.each([
  ['a plain', ['a'], ['b'], 'plain'],
  ['a plain', ['a', 'b'], [], 'plain'],
  ['an ordered', ['a'], ['b'], 'ordered'],
  ['an ordered', ['a', 'b'], [], 'ordered'],
] as const)(
  'a recovery in %s queue does not end the claims of %j, whose leases were renewed since its look',
  async (_, renewed, lost, kind) => {
    const { store, other, hold, ask, enqueue, claimFirst } = await scene(kind)
    await enqueue(job('a'), job('b'))
    const { fence } = await claimFirst()
    await ask('UPDATE @.bunch SET lease_ms = 0')
    await ask('UPDATE @.queue_state SET lease_floor = 0')
    const end = hold()
    const claiming = other.claim([{ queue, limit: 9 }], by('worker02'))
    await end.reached
    const items = renewed.map((id) => ({ queue, id, fence }))
    expect(await store.extend(items.map((item) => ({ ...item, leaseMs: 30_000 })))).toEqual(renewed.map(() => 'ok'))
    end.go()

    const { crashed, claims } = await claiming
    expect(crashed.map(({ id }) => id)).toEqual(lost)
    expect(claims).toEqual([])
    expect(await store.settle(items.map((item) => ({ ...item, kind: 'complete' })))).toEqual(renewed.map(() => 'ok'))
  },
)

it.each(kinds)('a claim of %s queue that was adopted does not end with the worker that held it', async (_, kind) => {
  const { store, other, hold, enqueue, claimFirst } = await scene(kind)
  await enqueue(job('a'))
  const { fence } = await claimFirst()
  const key = { queue, id: 'a', fence }
  const end = hold()
  const gone = other.workers.gone([key], 'worker01', 'killed')
  await end.reached
  expect(await store.workers.adopt(key, 'worker01', 'worker02')).toBe(true)
  end.go()

  expect(await gone).toEqual({ crashed: [], buried: [] })
  expect(await store.workers.held('worker02')).toMatchObject([key])
  expect(await store.settle([{ ...key, kind: 'complete' }])).toEqual(['ok'])
})

it.each([
  ['adds nothing', 'max_pending = NULL'],
  ['and would be refused by now, adds nothing', 'max_pending = 1'],
  ['and would find a draining queue by now, adds nothing', 'draining = true'],
])(
  'a call that is sent again while its first time waits for its commit %s, though its job has run and gone',
  async (_, change) => {
    const { address, store, other, hold, ask, claimFirst } = await scene()
    const jobs = [job('a')]
    const user = await testClient()
    await user.query('BEGIN')
    const values = [...columnsOf(jobs), false, ['call'], [1]]
    const places = values.map((_, i) => `$${i + 1}`).join(', ')
    await user.query(`SELECT ${address.schema}.enqueue_1(qid, ${places}) FROM ${address.schema}.queue`, values)
    const insert = hold('enqueue_again_1')
    const again = other.enqueue([{ callId: 'call', isResent: true, queue, jobs }])
    await insert.reached
    await user.query('COMMIT')
    const { fence } = await claimFirst()
    expect(await store.settle([{ queue, id: 'a', fence, kind: 'complete' }])).toEqual(['ok'])
    await store.enqueue([{ callId: 'other', queue, jobs: [job('b')] }])
    await ask(`UPDATE @.queue SET ${change}`)
    insert.go()

    expect(await again).toEqual([['added']])
    expect(await ask('SELECT id FROM @.job')).toEqual([{ id: 'b' }])
    expect(await ask(`SELECT count(*)::int AS n FROM @.call WHERE ids = 'call'`)).toEqual([{ n: 1 }])
    expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
  },
)

it('nor does a graph that is sent again, though its join has run and gone', async () => {
  const { store, other, hold, ask, claimFirst } = await scene()
  const set = { name: 'all', queue, ids: 'a.all', isMany: true, onDead: 'fail', keepsResults: true, size: 0 } as const
  const graph = { callId: 'graph', queue, jobs: [{ ...job('a'), join: { sets: [set], sealWithinMs: 60_000 } }] }
  const insert = hold('graph_1')
  const again = other.joins.enqueue([{ ...graph, isResent: true }])
  await insert.reached
  expect(await store.joins.enqueue([graph])).toEqual({ outcome: 'added' })
  const { fence } = await claimFirst()
  expect(await store.settle([{ queue, id: 'a', fence, kind: 'complete' }])).toEqual(['ok'])
  insert.go()

  expect(await again).toEqual({ outcome: 'added' })
  expect(await ask('SELECT id FROM @.job')).toEqual([])
  expect(await store.health.check()).toMatchObject([{ level: 'ok' }])
})

/** How a job that was enqueued before another comes to wait in its old place again; each returns the change, as a statement. */
const returns = {
  'is released': ({ enqueue, claimFirst }) => released('ends_1', enqueue, claimFirst),
  'is released, of an ordered queue,': ({ enqueue, claimFirst }) => released('end_ids_1', enqueue, claimFirst),
  'receives its signal': async ({ store, enqueue, claimFirst }) => {
    await enqueue(job('a'))
    const { fence } = await claimFirst()
    expect(await store.settle([{ queue, id: 'a', fence, kind: 'wait', signal: 'go' }])).toEqual(['ok'])
    return `@.signal_1(qid, 'a', 'go', 0, NULL, NULL, 9, 999)`
  },
  'has no members to wait for': async ({ store }) => {
    const set = { name: 'all', queue, ids: 'a.all', isMany: true, onDead: 'fail', keepsResults: true } as const
    const jobs = [{ ...job('a'), join: { sets: [set], sealWithinMs: 60_000 } }]
    expect(await store.joins.enqueue([{ callId: 'join', queue, jobs }])).toEqual({ outcome: 'added' })
    return `@.seal_2(qid, 'a', '{"all":0}')`
  },
  'gets the priority of the other': async ({ enqueue }) => {
    await enqueue(job('a', { priority: -1 }))
    return `@.place_1(qid, '{a}', 0, NULL, NULL)`
  },
  'is pushed as due in the past, into an ordered queue,': async () =>
    `@.push_1(qid, 'all', '{a}', '{send}', '{1}', NULL, NULL, NULL, ARRAY[@.us() - 60000000], '{1}', NULL,
      ARRAY[gen_random_uuid()], NULL, NULL, NULL)`,
  'came behind a claim, in an ordered queue, and follows its completion,': async (at) =>
    `@.complete_ids_1(qid, ${await pushedBehindClaim(at)}, '{a}')`,
  'came behind a claim, in an ordered queue, and follows its last failure,': async (at) =>
    `@.end_ids_1(qid, '[{"id":"a","fence":${await pushedBehindClaim(at)},"to":"dead","attempt":1,"crashes":0,"pool":0}]')`,
  'is moved, from an ordered queue,': async ({ store }) => {
    await store.open([{ name: 'old', kind: 'ordered', order: 'fifo', maxCrashes: 3, dead: {} }])
    await store.enqueue([{ callId: 'old', queue: 'old', jobs: [job('a')] }])
    return `CASE name WHEN 'old' THEN @.adopt_ids_1(qid, '{a}', ARRAY(SELECT qid FROM @.queue WHERE name = '${queue}')) END`
  },
} satisfies Record<string, (at: Scene) => Promise<string>>

async function released(call: string, enqueue: Scene['enqueue'], claimFirst: Scene['claimFirst']): Promise<string> {
  await enqueue(job('a'))
  const { fence } = await claimFirst()
  return `@.${call}(qid, '[{"id":"a","fence":${fence},"to":"back","attempt":1,"crashes":0,"pool":0}]')`
}

/** Returns the fence of a claim of an id that was pushed again since. */
async function pushedBehindClaim({ enqueue, claimFirst }: Scene): Promise<number> {
  await enqueue(job('a'))
  const { fence } = await claimFirst()
  await enqueue(job('a', { payload: '2' }))
  return fence
}

it.each(Object.entries(returns))(
  'a job that %s comes before later ones, though the floor rises meanwhile',
  async (what, make) => {
    const at = await scene(what.includes('ordered') ? 'ordered' : 'plain')
    const { address, store, other, ask, enqueue } = at
    const change = await make(at)
    await enqueue(job('b'))
    // Its own upkeep is over.
    await store.close()
    await ask('DELETE FROM @.floor')
    const user = await testClient()
    await user.query('BEGIN')
    await user.query(`SELECT ${change} FROM @.queue`.replaceAll('@.', `${address.schema}.`))
    await ask('SELECT @.raise_floors_1(qid, 0) FROM @.queue')
    await user.query('COMMIT')

    expect((await other.claim([{ queue, limit: 1 }], by('worker02'))).claims).toMatchObject([{ id: 'a' }])
  },
)

it.each([
  ['pause', 'switch_1', ({ records }: PostgresStore) => records.pause(queue)],
  ['pause of a group', 'pause_group_1', ({ throttles }: PostgresStore) => throttles.pause(queue, 'g')],
] as const)(
  'a %s holds for the shards of a reshard that has begun since it looked for them',
  async (_, call, pause) => {
    const { store, other, hold, enqueue } = await scene('ordered')
    await enqueue(job('a', { group: 'g' }))
    const held = hold(call)
    const paused = pause(other)
    await held.reached
    while ((await store.records.reshard(queue, 2)).more);
    held.go()
    await paused

    expect((await store.claim([{ queue, limit: 1 }], by('worker01'))).claims).toEqual([])
  },
)

it.each([
  ['a plain queue that is paused', 'plain', 'pause_group_1(qid, $1, true)'],
  ['an ordered queue that is paused', 'ordered', 'pause_group_1(qid, $1, true)'],
  ['a plain queue that is held', 'plain', 'hold_1(qid, $1, @.us() / 1000 + 60000)'],
] as const)('a suspect does not start in a group of %s since the look of its claim', async (_, kind, close) => {
  const { store, other, hold, ask, enqueue, claimFirst } = await scene(kind)
  await enqueue(job('a', { group: 'g' }))
  const { id, fence } = await claimFirst()
  await store.workers.gone([{ queue, id, fence }], 'worker01', 'killed')
  const apply = hold('apply_2')
  const claiming = other.claim([{ queue, limit: 1 }], { ...by('worker02'), alone: true })
  await apply.reached
  await ask(`SELECT @.${close.replace('$1', "'g'")} FROM @.queue`)
  apply.go()

  expect((await claiming).claims).toEqual([])
  expect((await store.depth([queue])).depths).toMatchObject([{ suspects: 1, running: 0 }])
})

it('the counts of a queue are those of one moment', async () => {
  const { store, ask, enqueue, claimFirst } = await scene()
  await enqueue(job('a'))
  await claimFirst()
  await ask('BEGIN')
  // The statement that counts running jobs then waits here, behind the one that has counted those that have completed.
  await ask('LOCK TABLE @.bunch IN ACCESS EXCLUSIVE MODE')
  const counted = store.depth([queue])
  await expect
    .poll(() => ask("SELECT FROM pg_locks WHERE relation = '@.bunch'::regclass AND NOT granted"))
    .toHaveLength(1)
  await ask('INSERT INTO @.tally (qid, processed) SELECT qid, 1 FROM @.bunch')
  await ask('DELETE FROM @.bunch')
  await ask('COMMIT')

  expect((await counted).depths).toMatchObject([{ running: 1, processed: 0 }])
  expect((await store.depth([queue])).depths).toMatchObject([{ running: 0, processed: 1 }])
})

it('a schedule that ticks while it is written keeps its tick, and is not written', async () => {
  const { store, other, hold } = await scene()
  const [schedules, others] = [schedulesOf(store), schedulesOf(other)]
  const { now } = await schedules.due('worker01', 15_000, 9)
  expect(await schedules.put(hourly('report', now - 1), undefined)).toBe(true)
  const read = (await schedules.get('report'))!
  const insert = hold('schedule')
  const writing = others.put(hourly('report', read.nextAt, { revision: 'report-2' }), read)
  await insert.reached
  expect(await schedules.tick(tickOf(read))).toEqual({ outcome: 'ticked', enqueued: ['added'] })
  insert.go()

  expect(await writing).toBe(false)
  expect(await schedules.get('report')).toMatchObject({ revision: 'report-1', nextAt: now - 1 + hourMs, ticked: 1 })
  expect(await schedules.tick(tickOf(read))).toEqual({ outcome: 'lost' })
})
