import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { SqliteWait } from '#src/stores/sqlite/sqlite-wait.js'
import { SqliteWakeTokens, tokenName } from '#src/stores/sqlite/sqlite-wake-token.js'
import type { SqliteThreadClient } from '#src/stores/sqlite/thread/sqlite-thread-client.js'
import { enqueueCall, job, queue, SqliteScene } from './sqlite-scene.js'

// It looks at how soon a thread wakes.
const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(async () => {
  vi.useRealTimers()
  await scene.close()
})

/** From here on the timers of this thread stand still: no look comes by itself, so only the bell can end a wait. */
function withoutLooks(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
}

/** What this wait says when these timers have gone on for at most so long. Meanwhile `turn` lets others do their part. */
async function heardWithin<T>(ms: number, wait: Promise<T>, turn: () => Promise<unknown>): Promise<T | undefined> {
  let answer: T | undefined
  void wait.then((value) => {
    answer = value
  })
  for (let passed = 0; answer === undefined && passed < ms; passed += 50) {
    await vi.advanceTimersByTimeAsync(50)
    for (let i = 0; i < 5; i += 1) await turn()
  }
  return answer
}

const never = new AbortController().signal
const by = { worker: 'w', leaseMs: 60_000 }
const from = [{ queue: queue.name, limit: 1 }]
/** A wait that has begun: its first look is behind it. */
async function resting(store: SqliteStore, signal = never): Promise<{ rung: Promise<string[]> }> {
  const rung = store.wait([queue.name], 20_000, signal)
  for (let i = 0; i < 5; i += 1) await store.depth([queue.name])
  return { rung }
}

async function runAll(store: SqliteStore): Promise<string[]> {
  const { claims } = await store.claim([{ queue: queue.name, limit: 99 }], by)
  await store.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' })))
  return claims.map(({ id }) => id)
}

it('an idle claim writes nothing', async () => {
  const store = await scene.opened()
  await store.enqueue([{ callId: 'later', queue: queue.name, jobs: [job('later', { delayMs: 3_600_000 })] }])
  await store.enqueue([enqueueCall('held')])
  expect((await store.claim(from, { worker: 'other', leaseMs: 60_000 })).claims).toHaveLength(1)
  // It learns that the lease ends first, and leads from now on.
  expect((await store.claim(from, by)).waits[0]).toMatchObject({ reason: 'scheduled', lead: true })
  const db = (await loadDriver())(scene.file)
  const version = () => db.prepare('PRAGMA data_version').get()
  const before = [version(), statSync(`${scene.file}-wal`, { bigint: true }).mtimeNs]
  for (let i = 0; i < 5; i += 1) expect((await store.claim(from, { ...by, heads: true })).claims).toEqual([])
  expect([version(), statSync(`${scene.file}-wal`, { bigint: true }).mtimeNs]).toEqual(before)
  db.close()
})

it('a ring without a waiter is found by the look of the next wait, and the ring after it is heard', async () => {
  const [one, other] = [await scene.opened(), await scene.opened()]
  await other.enqueue([enqueueCall('a')])
  expect(readdirSync(`${scene.file}-bell`)).toContain(tokenName(queue.name))
  withoutLooks()
  expect(await one.wait([queue.name], 20_000, never)).toEqual([queue.name])
  expect(await runAll(one)).toEqual(['a'])
  await other.enqueue([enqueueCall('b')])
  expect(await runAll(one)).toEqual(['b'])

  const { rung } = await resting(one)
  await other.enqueue([enqueueCall('c')])
  expect(await rung).toEqual([queue.name])
})

it('a ring for a later job without a waiter goes to the next waiter, unless somebody leads', async () => {
  const [one, other] = [await scene.opened(), await scene.opened()]
  const later = (id: string) => ({ callId: id, queue: queue.name, jobs: [job(id, { delayMs: 3_600_000 })] })
  await other.enqueue([later('a')])
  expect(await one.wait([queue.name], 20_000, never)).toEqual([queue.name])
  await one.claim(from, by)
  new SqliteWakeTokens(scene.file).put(queue.name)
  expect(await one.wait([queue.name], 50, never)).toEqual([])
})

it('a lead that is late by the rounding of two clocks still leads', async () => {
  const later = join(scene.folder, 'later')
  const text = `import { existsSync } from 'node:fs'
    export const clock = {
      now: () => (existsSync(${JSON.stringify(later)}) ? 1_000_001 : 1_000_000),
      mono: () => 5_000,
      bootId: () => 'boot',
    }`
  const store = await scene.opened(`data:text/javascript,${encodeURIComponent(text)}`)
  await store.enqueue([{ callId: 'a', queue: queue.name, jobs: [job('a', { delayMs: 3_600_000 })] }])
  await store.claim(from, by)
  writeFileSync(later, '')
  new SqliteWakeTokens(scene.file).put(queue.name)
  expect(await store.wait([queue.name], 50, never)).toEqual([])
})

it('a woken worker that leaves jobs behind wakes the next', async () => {
  const stores = await Promise.all(Array.from({ length: 4 }, () => scene.opened()))
  withoutLooks()
  const rests = await Promise.all(stores.slice(1).map((store) => resting(store)))
  let woken = 0
  const claimed = rests.map(async ({ rung }, i) => {
    await rung
    woken += 1
    return (await stores[i + 1]!.claim(from, by)).claims.map(({ id }) => id)
  })
  await stores[0]!.enqueue([enqueueCall('a', 'b', 'c')])
  expect((await Promise.all(claimed)).flat().sort()).toEqual(['a', 'b', 'c'])
  expect(woken).toBe(3)
})

/** A wait beside a store that finds these in one look after the other, and nothing in later ones. */
function waitThatFinds(...looks: string[][]): { wait: SqliteWait; looksLeft: () => number } {
  return waitOn(looks, true)
}

function waitOn(looks: string[][], changes: boolean): { wait: SqliteWait; looksLeft: () => number } {
  const call = async (name: string) => (name === 'peek' ? { found: looks.shift() ?? [], changes } : 0)
  const wait = new SqliteWait(scene.file, { isClosed: false, call } as unknown as SqliteThreadClient)
  return { wait, looksLeft: () => looks.length }
}

it('a waiter that is rung while it gives up passes the ring on', async () => {
  const { wait, looksLeft } = waitThatFinds([])
  const tokens = new SqliteWakeTokens(scene.file)
  const abort = new AbortController()
  const rung = wait.forQueues([queue.name], 20_000, abort.signal)
  while (looksLeft() > 0) await new Promise(setImmediate)
  tokens.put(queue.name)
  wait.told({ answers: [], rung: [queue.name], hasEnds: false, hasMessages: false })
  expect(tokens.take(queue.name)).toBe(false)
  abort.abort()
  expect(await rung).toEqual([])
  expect(tokens.take(queue.name)).toBe(true)
  wait.close()
})

it('a job that a look finds while another worker takes it wakes nobody; one that stays does', async () => {
  const passing = waitThatFinds([], [queue.name], [])
  expect(await passing.wait.forQueues([queue.name], 1_500, never)).toEqual([])
  expect(passing.looksLeft()).toBe(0)
  const staying = waitThatFinds([], [queue.name], [queue.name])
  expect(await staying.wait.forQueues([queue.name], 20_000, never)).toEqual([queue.name])
  for (const { wait } of [passing, staying]) wait.close()
})

it('a job whose ring was lost is noticed within a second', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  await store.records.pause(queue.name)
  const db = (await loadDriver())(scene.file)
  withoutLooks()
  for (let round = 0; round < 3; round += 1) {
    const { rung } = await resting(store)
    db.exec('UPDATE queue SET paused = 0')
    expect(await heardWithin(1_000, rung, () => store.depth([queue.name]))).toEqual([queue.name])
    db.exec('UPDATE queue SET paused = 1')
  }
  db.close()
})

it('a lead that never asks is replaced: a due job is noticed within a second of its lapse', async () => {
  const store = await scene.opened()
  await store.enqueue([{ callId: 'a', queue: queue.name, jobs: [job('a', { delayMs: 100 })] }])
  expect((await store.claim(from, { ...by, worker: 'dead' })).waits[0]).toMatchObject({ lead: true })
  const startedAt = performance.now()
  expect(await store.wait([queue.name], 20_000, never)).toEqual([queue.name])
  const ms = performance.now() - startedAt
  expect(ms).toBeGreaterThan(1_000)
  // By itself the wait would end after 20 s.
  expect(ms).toBeLessThan(15_000)
})

it('the bell keeps ringing after its directory was removed', async () => {
  const [one, other] = [await scene.opened(), await scene.opened()]
  withoutLooks()
  const { rung } = await resting(one)
  rmSync(`${scene.file}-bell`, { recursive: true })
  await other.enqueue([enqueueCall('a')])
  expect(await heardWithin(1_000, rung, () => one.depth([queue.name]))).toEqual([queue.name])
  expect(await runAll(one)).toEqual(['a'])

  const next = await resting(one)
  await other.enqueue([enqueueCall('b')])
  expect(await next.rung).toEqual([queue.name])
})

it('if there can be no bell, looks replace it', async () => {
  writeFileSync(`${scene.file}-bell`, 'in the way')
  const [one, other] = [await scene.opened(), await scene.opened()]
  withoutLooks()
  const { rung } = await resting(one)
  await other.enqueue([enqueueCall('a')])
  expect(await heardWithin(400, rung, () => one.depth([queue.name]))).toEqual([queue.name])
  expect(await runAll(one)).toEqual(['a'])

  const own = await resting(one)
  await vi.advanceTimersByTimeAsync(100)
  await one.enqueue([enqueueCall('b')])
  expect(await heardWithin(1_000, own.rung, () => one.depth([queue.name]))).toEqual([queue.name])
})

it('a job whose token was taken by somebody who never asks is noticed within a second', async () => {
  const { wait } = waitOn([[], [], [queue.name], [queue.name]], false)
  withoutLooks()
  const rung = wait.forQueues([queue.name], 20_000, never)
  await vi.advanceTimersByTimeAsync(900)
  wait.told({ answers: [], rung: [queue.name], hasEnds: false, hasMessages: false })
  expect(await heardWithin(1_100, rung, async () => {})).toEqual([queue.name])
  wait.close()
})

it('queues whose names differ only in capitals have different tokens, and no name leads out of the directory', () => {
  expect(tokenName('Mail')).toBe('+mail')
  expect(tokenName('mail')).toBe('mail')
  expect(tokenName('../jobs.db')).not.toContain('/')
})

it('only one of all who try gets a token, and again only one after it was put twice', () => {
  const tokens = Array.from({ length: 5 }, () => new SqliteWakeTokens(scene.file))
  expect(tokens.filter((handle) => handle.take('mail'))).toHaveLength(0)
  for (let round = 0; round < 2; round += 1) {
    tokens[0]!.put('mail')
    tokens[1]!.put('mail')
    expect(tokens.filter((handle) => handle.take('mail'))).toHaveLength(1)
  }
  rmSync(`${scene.file}-bell`, { recursive: true })
  tokens[0]!.put('mail')
  expect(existsSync(`${scene.file}-bell/mail`)).toBe(true)
})
