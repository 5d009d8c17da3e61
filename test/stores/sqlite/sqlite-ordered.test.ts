import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, expect, it } from 'vitest'
import { ConfigConflictError } from '#src/core/errors.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { shardOf } from '#src/stores/rules/payloads.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { job, SqliteScene } from './sqlite-scene.js'

const scene = new SqliteScene()
afterEach(() => scene.close())

const orders: QueueSettings = { name: 'orders', kind: 'ordered', order: 'fifo', shards: 3, maxCrashes: 3, dead: {} }
let lastCall = 0
const by = { worker: 'w', leaseMs: 60_000 }

async function opened(settings = orders): Promise<SqliteStore> {
  const store = scene.store()
  await store.open([settings])
  return store
}

async function push(store: SqliteStore, jobs: readonly NewJob[]): Promise<string[]> {
  const answers: string[] = []
  for (let at = 0; at < jobs.length; at += 250) {
    const call = { callId: `call-${++lastCall}`, queue: 'orders', jobs: jobs.slice(at, at + 250) }
    answers.push(...(await store.enqueue([call])).flat())
  }
  return answers
}

function complete(store: SqliteStore, claims: readonly Claim[]) {
  return store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
}

async function reshardToTheEnd(store: SqliteStore, shards: number): Promise<number> {
  let changed = 0
  for (;;) {
    const step = await store.records.reshard('orders', shards)
    changed += step.changed
    if (!step.more) return changed
  }
}

it('two processes take turns on each id, in the order of its payloads, and lose none', async () => {
  const store = await opened()
  const ids = Array.from({ length: 12 }, (_, i) => `id-${i}`)
  const children = [0, 1].map(() => spawnConsumer())
  const lines: string[] = []
  const outputs = children.map((child) => createInterface(child.stdout))
  await Promise.all(outputs.map((output) => once(output, 'line')))
  for (const output of outputs) output.on('line', (line) => lines.push(line))
  const ends = outputs.map((output) => once(output, 'close'))
  try {
    for (let round = 0; round < 40; round += 1)
      await push(
        store,
        ids.map((id) => job(id, { payload: `${round}` })),
      )
    await expect
      .poll(async () => (await store.depth(['orders'])).depths[0], { timeout: 20_000 })
      .toMatchObject({
        ready: 0,
        running: 0,
        payloads: 0,
      })
  } finally {
    for (const child of children) child.stdin.end()
  }
  await Promise.all(ends)

  const runs = lines.map(
    (line) => JSON.parse(line) as { worker: string; id: string; fence: number; payloads: string[] },
  )
  expect(new Set(runs.map(({ worker }) => worker)).size).toBe(2)
  for (const id of ids) {
    const inTurn = runs.filter((run) => run.id === id).sort((a, b) => a.fence - b.fence)
    expect(inTurn.flatMap(({ payloads }) => payloads)).toEqual(Array.from({ length: 40 }, (_, round) => `${round}`))
  }
})

it('several completions of one claim at once leave no payload behind, except those of a successor', async () => {
  const store = await opened({ ...orders, shards: 1 })
  const ids = ['a', 'b', 'c', 'd', 'e']
  await push(
    store,
    ids.map((id) => job(id)),
  )
  const claimed = async () => (await store.claim([{ queue: 'orders', limit: 10 }], by)).claims
  const first = await claimed()
  await push(store, [job('c', { payload: 'later' })])
  expect(await complete(store, first)).toEqual(ids.map(() => 'ok'))

  const second = await claimed()
  expect(second.map(({ id, payloads }) => [id, payloads!.map(({ payload }) => payload)])).toEqual([['c', ['later']]])
  await push(
    store,
    ids.map((id) => job(id)),
  )
  const running = [...(await claimed()), ...second]
  expect(await complete(store, running)).toEqual(running.map(() => 'ok'))
  expect(await complete(store, await claimed())).toEqual(['ok'])
  const db = (await loadDriver())(scene.file)
  expect(db.prepare('SELECT count(*) AS n FROM payload').get()).toEqual({ n: 0 })
  expect(db.prepare('SELECT count(*) AS n FROM job').get()).toEqual({ n: 0 })
  db.close()
})

it('an interrupted reshard can be continued: nothing is granted meanwhile, and pushes join moving payloads', async () => {
  const store = await opened()
  const ids = Array.from({ length: 1_500 }, (_, i) => `id-${i}`)
  await push(
    store,
    ids.map((id) => job(id, { payload: '"first"' })),
  )
  const { claims } = await store.claim([{ queue: 'orders', limit: 1 }], by)
  await store.settle([{ queue: 'orders', id: claims[0]!.id, fence: claims[0]!.fence, kind: 'bury' }])
  expect(await store.records.reshard('orders', 7)).toEqual({ changed: 1_000, more: true })
  await store.close()

  const reopened = await opened()
  expect((await reopened.claim([{ queue: 'orders', limit: 9 }], by)).waits).toHaveLength(7)
  expect((await reopened.claim([{ queue: 'orders', shard: 0, limit: 9 }], by)).waits).toEqual([
    { queue: 'orders', shard: 0, reason: 'paused' },
  ])
  await expect(reopened.records.reshard('orders', 5)).rejects.toBeInstanceOf(ConfigConflictError)
  const again = ids.map((id) => job(id, { payload: '"second"' }))
  const answers = await push(reopened, [...again, job('new')])
  expect(answers.filter((answer) => answer === 'merged')).toHaveLength(1_499)
  expect(answers.filter((answer) => answer === 'added')).toHaveLength(2)
  expect((await reopened.records.morgue.get('orders', claims[0]!.id))?.payloadCount).toBe(1)
  expect((await reopened.records.list('orders', { by: 'id', limit: 200 })).jobs).toHaveLength(200)
  await reshardToTheEnd(reopened, 7)

  const found = new Map<string, number>()
  for (let shard = 0; shard < 7; shard += 1) {
    const taken = await reopened.claim([{ queue: 'orders', shard, limit: 1_000 }], by)
    for (const { id, payloads } of taken.claims) found.set(id, payloads!.length)
    await complete(reopened, taken.claims)
  }
  expect(found.size).toBe(1_501)
  expect([...found.values()].filter((count) => count === 2)).toHaveLength(1_499)
  expect((await reopened.depth(['orders'])).depths[0]).toMatchObject({
    ready: 0,
    payloads: 0,
    dead: 1,
    processed: 1_501,
  })
})

it('a claim of some of the payloads of an id, and its end, touch no others', async () => {
  const store = await opened({ ...orders, shards: 1 })
  await push(
    store,
    Array.from({ length: 5_000 }, (_, i) => job('hot', { payload: `${i}` })),
  )
  const db = (await loadDriver())(scene.file)
  db.exec(`CREATE TABLE touched (n INTEGER); INSERT INTO touched VALUES (0);
    CREATE TRIGGER touched_update AFTER UPDATE ON payload BEGIN UPDATE touched SET n = n + 1; END;
    CREATE TRIGGER touched_delete AFTER DELETE ON payload BEGIN UPDATE touched SET n = n + 1; END`)
  const touched = () => (db.prepare('SELECT n FROM touched').get() as { n: number }).n
  const from = [{ queue: 'orders', limit: 1, maxPayloads: 100 }]

  const { claims } = await store.claim(from, by)
  expect(claims[0]).toMatchObject({ hasMore: true })
  expect(claims[0]!.payloads!.map(({ payload }) => Number(payload))).toEqual(Array.from({ length: 100 }, (_, i) => i))
  expect(touched()).toBe(100)
  await complete(store, claims)
  expect(touched()).toBe(200)

  const whole = await store.claim([{ queue: 'orders', limit: 1 }], by)
  expect(whole.claims[0]!.payloads).toHaveLength(4_900)
  await store.settle([{ queue: 'orders', id: 'hot', fence: whole.claims[0]!.fence, kind: 'retry', delayMs: 0 }])
  await store.records.bury('orders', 'all')
  await store.records.morgue.revive('orders', 'all')
  await reshardToTheEnd(store, 4)
  expect(touched()).toBe(200)
  expect((await store.records.get('orders', 'hot'))?.payloadCount).toBe(4_900)
  db.close()
})

it('a claim of an id with large payloads returns at most a mebibyte, in order, and leaves the rest for the next', async () => {
  const store = await opened({ ...orders, shards: 1 })
  for (let i = 0; i < 10; i += 1) await push(store, [job('hot', { payload: `${i}`.padEnd(256_000, '.') })])
  const numbers = ({ payloads }: Claim) => payloads!.map(({ payload }) => Number.parseInt(payload as string, 10))
  const from = [{ queue: 'orders', limit: 1, maxPayloads: 1_000 }]
  for (const [expected, more] of [
    [[0, 1, 2, 3], true],
    [[4, 5, 6, 7], true],
    [[8, 9], undefined],
  ]) {
    const { claims } = await store.claim(from, by)
    expect(numbers(claims[0]!)).toEqual(expected)
    expect(claims[0]!.hasMore).toBe(more)
    if (more) await complete(store, claims)
    else await store.settle([{ queue: 'orders', id: 'hot', fence: claims[0]!.fence, kind: 'retry', delayMs: 0 }])
  }
  // One that is larger still, with what it carries, is handed over by itself; bytes count, not characters.
  const [large, meta] = ['ä'.repeat(524_288), 'm'.repeat(9)]
  await push(store, [job('hot', { payload: large, meta, score: 1 }), job('hot', { payload: large.slice(9), score: 0 })])
  const first = await store.claim(from, by)
  expect(first.claims[0]!.payloads).toEqual([{ score: 0, payload: large.slice(9) }])
  await complete(store, first.claims)
  const second = await store.claim(from, by)
  expect(second.claims[0]!.payloads).toEqual([{ score: 1, payload: large, meta }])
  await complete(store, second.claims)
  const third = await store.claim(from, by)
  expect(numbers(third.claims[0]!)).toEqual([8, 9])
})

it.each([undefined, Number.POSITIVE_INFINITY])('a claim of all payloads (%s) gets all of them', async (maxPayloads) => {
  const store = await opened({ ...orders, shards: 1 })
  for (let i = 0; i < 6; i += 1) await push(store, [job('hot', { payload: `${i}`.padEnd(256_000, '.') })])
  const from = { queue: 'orders', limit: 1, ...(maxPayloads === undefined ? {} : { maxPayloads }) }
  const { claims } = await store.claim([from], by)
  expect(claims[0]!.payloads).toHaveLength(6)
  expect(claims[0]!.hasMore).toBeUndefined()
})

it('a claim with a mebibyte of payloads takes no other id, from this shard or the next', async () => {
  const store = await opened()
  const ids = ['id-1', 'id-12', 'id-3', 'id-2', 'id-0']
  expect(ids.map((id) => shardOf(id, 3))).toEqual([0, 0, 0, 1, 2])
  for (const id of ids)
    for (let i = 0; i < 3; i += 1) await push(store, [job(id, { payload: `${i}`.padEnd(200_000, '.'), runAt: 1 })])
  const from = [{ queue: 'orders', limit: 10, maxPayloads: 10 }]
  const taken: string[][] = []
  for (let round = 0; round < 3; round += 1) {
    const { claims } = await store.claim(from, by)
    taken.push(claims.map(({ id }) => id))
    expect(claims.every(({ payloads }) => payloads!.length === 3)).toBe(true)
    await complete(store, claims)
  }
  expect(taken).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])
})

it('pushing to an id with many payloads costs no more than pushing to one with few', async () => {
  const store = await opened({ ...orders, shards: 1 })
  const times: number[] = []
  for (let call = 0; call < 160; call += 1) {
    const jobs = Array.from({ length: 250 }, (_, i) =>
      job('hot', { payload: `${call}.${i}`, score: (i * 7_919) % 1_009 }),
    )
    const startedAt = performance.now()
    await store.enqueue([{ callId: `${call}`, queue: 'orders', jobs }])
    times.push(performance.now() - startedAt)
  }
  // The quickest of each: what else the machine does makes calls slower, never quicker.
  const [few, many] = [Math.min(...times.slice(0, 16)), Math.min(...times.slice(-16))]
  console.log(`250 payloads beside none: ${few.toFixed(1)} ms, beside 40,000: ${many.toFixed(1)} ms`)
  expect(many).toBeLessThan(4 * few + 5)
})

/** Runs what there is, a few payloads at a time, until its input ends; one line for each claim. */
function spawnConsumer() {
  const script = `
    const { SqliteStore } = await import(process.env.STORE_MODULE)
    const store = new SqliteStore({ file: process.env.STORE_FILE })
    await store.open([${JSON.stringify(orders)}])
    const ended = new AbortController()
    process.stdin.on('end', () => ended.abort()).resume()
    const worker = 'worker-' + process.pid
    console.log('ready')
    while (!ended.signal.aborted) {
      const { claims } = await store.claim([{ queue: 'orders', limit: 2, maxPayloads: 3 }], { worker, leaseMs: 60_000 })
      for (const { id, fence, payloads } of claims)
        console.log(JSON.stringify({ worker, id, fence, payloads: payloads.map(({ payload }) => payload) }))
      await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
      if (claims.length === 0) await store.wait(['orders'], 200, ended.signal)
    }
    await store.close()`
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: {
      ...process.env,
      STORE_MODULE: import.meta.resolve('#src/stores/sqlite/sqlite-store.js'),
      STORE_FILE: scene.file,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}
