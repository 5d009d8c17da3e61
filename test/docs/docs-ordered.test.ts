/** The facts of the pages on ordered jobs and on merging, against the code: the tables of merging, delays, lifetimes. */

import { defineOrderedTask, millrace, polynomial } from 'millrace'
import type { SettleItem, Store } from 'millrace/store'
import type { HarnessMaker, StoreHarness } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { harnesses } from '../stores/harnesses.js'
import { Document, plain } from './document.js'
import { membersOf } from './interface-members.js'

const page = new Document('docs/ordered-jobs.md')
const mergingPage = new Document('docs/merging.md')

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** An id of an ordered queue in a store whose clock the test moves. */
class Scene {
  readonly store: Store
  readonly #harness: StoreHarness
  /** The instants that have a word in the tables. */
  readonly #words = new Map<number, string>()
  #now: number
  #fence = 0
  #calls = 0
  queue = 'it'

  constructor(harness: StoreHarness, store: Store, now: number) {
    this.#harness = harness
    this.store = store
    this.#now = now
  }

  static async open(makeHarness: HarnessMaker, maxCrashes: number): Promise<Scene> {
    const harness = await makeHarness()
    const store = await harness.open()
    const settings = { kind: 'ordered', order: 'fifo', shards: 1, maxCrashes, dead: {} } as const
    await store.open([
      { name: 'it', ...settings },
      { name: 'other', ...settings },
    ])
    const { now } = await store.depth(['it'])
    return new Scene(harness, store, now)
  }

  close(): Promise<void> {
    return this.#harness.close()
  }

  /** The word of an instant so long from now. */
  name(word: string, inMs: number): void {
    this.#words.set(this.#now + inMs, word)
  }

  async advance(ms: number): Promise<void> {
    await this.#harness.advance(ms)
    this.#now += ms
  }

  async push(payload: string, score: number, delayMs?: number): Promise<void> {
    const job = { id: '1', task: 'it', payload, priority: 0, rememberMs: 0, score, ...(delayMs && { delayMs }) }
    this.#calls += 1
    await this.store.enqueue([{ callId: String(this.#calls), queue: 'it', jobs: [job] }])
  }

  async claim(alone = false): Promise<void> {
    const { claims } = await this.store.claim([{ queue: 'it', limit: 1 }], { worker: 'a', leaseMs: 3 * second, alone })
    this.#fence = claims[0]!.fence
  }

  async settle(end: SettleEnd): Promise<void> {
    expect(await this.store.settle([{ queue: 'it', id: '1', fence: this.#fence, ...end }])).toEqual(['ok'])
  }

  /** The lease ends unsettled, and somebody finds that. */
  async crash(): Promise<void> {
    await this.advance(3 * second)
    await this.store.claim([{ queue: 'it', limit: 0 }], { worker: 'b', leaseMs: 3 * second })
  }

  /** As a row of the tables has it. */
  async row(): Promise<string[]> {
    const live = await this.store.records!.get(this.queue, '1')
    const dead = await this.store.records!.morgue.get(this.queue, '1')
    const names = (job: typeof dead) => (job?.payloads ?? []).map(({ payload }) => payload).join(', ')
    if (live === undefined || live.state === 'dead') return ['', '', '', names(dead)]
    const due = this.#words.get(live.runAt) ?? (live.runAt === this.#now ? 'now' : String(live.runAt))
    return [names(live), due, String(live.attempt), names(dead)]
  }
}

type SettleEnd = SettleItem extends infer Item
  ? Item extends unknown
    ? Omit<Item, 'queue' | 'id' | 'fence'>
    : never
  : never

/** One of each kind. */
const stores = ['memory', 'sqlite', 'redis'] as const

/** What a row of a table tells of, each way to do it. */
type Row = readonly ((scene: Scene) => Promise<unknown>)[]

const ids = { ids: ['1'] }

const whileItWaits: Readonly<Record<string, Row>> = {
  'd (1.5) is enqueued': [(scene) => scene.push('d', 1.5, hour)],
  'b (2) is enqueued': [(scene) => scene.push('b', 2)],
  'b (3) is enqueued': [(scene) => scene.push('b', 3)],
  'run-now': [({ store }) => store.records!.runNow('it', ids)],
  revive: [({ store }) => store.records!.morgue.revive('it', ids)],
  bury: [({ store }) => store.records!.bury('it', ids)],
  'cancel, delete': [({ store }) => store.records!.cancel('it', ids), ({ store }) => store.records!.delete('it', ids)],
  'reshard, move': [
    async ({ store }) => {
      while ((await store.records!.reshard('it', 3)).more);
    },
    async (scene) => {
      scene.queue = 'other'
      while ((await scene.store.records!.move('it', 'other')).more);
    },
  ],
}

const completed = { kind: 'complete' } as const
const failed = { kind: 'retry', delayMs: 30 * minute } as const

async function cancelled(scene: Scene, end: SettleEnd, later?: string): Promise<void> {
  await scene.store.records!.cancel('it', ids)
  if (later !== undefined) await scene.push(later, 5)
  await scene.settle(end)
}

const whenItsClaimEnds: Readonly<Record<string, Row>> = {
  complete: [(scene) => scene.settle(completed)],
  'failure, with retries left': [
    async (scene) => {
      scene.name('after its backoff', failed.delayMs)
      await scene.settle(failed)
    },
  ],
  'failure, with a done': [
    async (scene) => {
      scene.name('after its backoff', failed.delayMs)
      await scene.settle({ ...failed, done: 1 })
    },
  ],
  'the last failure': [(scene) => scene.settle({ ...failed, last: true, reason: 'max-retries' })],
  'the last failure, with a done': [(scene) => scene.settle({ ...failed, last: true, reason: 'max-retries', done: 1 })],
  'release: a stop': [(scene) => scene.settle({ kind: 'release', delayMs: 0 })],
  "snooze('10m')": [
    async (scene) => {
      scene.name('in ten minutes', 10 * minute)
      await scene.settle({ kind: 'release', delayMs: 10 * minute })
    },
  ],
  crash: [(scene) => scene.crash()],
  'one crash too many': [(scene) => scene.crash()],
  'bury(), bad-payload': [(scene) => scene.settle({ kind: 'bury', reason: 'bad-payload' })],
  'cancel() by its handler': [(scene) => scene.settle({ kind: 'cancel' })],
  'cancelled by an operator, then complete, or failure': [
    (scene) => cancelled(scene, completed),
    (scene) => cancelled(scene, failed),
    (scene) => cancelled(scene, { ...failed, last: true }),
  ],
  'the same, and d was enqueued after the cancel': [
    (scene) => cancelled(scene, completed, 'd'),
    (scene) => cancelled(scene, failed, 'd'),
  ],
}

describe.each(stores)('the tables on merging, on the %s store', (store) => {
  const makeHarness = harnesses.get(store)!
  const [waiting, running] = ['While the job waits', 'When a claim ends'].map((under) => mergingPage.rows(under))

  it('have exactly the rows that are tried here', () => {
    expect(waiting!.map(([what]) => plain(what!))).toEqual(Object.keys(whileItWaits))
    expect(running!.map(([what]) => plain(what!))).toEqual(Object.keys(whenItsClaimEnds))
  })

  it.each(Object.entries(whileItWaits))('are right about a waiting id: %s', async (what, ways) => {
    for (const way of ways) {
      const scene = await Scene.open(makeHarness, 3)
      await scene.push('c', 0)
      await scene.store.records!.bury('it', ids)
      await scene.push('b', 2)
      await scene.push('a', 1)
      await scene.claim()
      scene.name('at six', 6 * hour)
      await scene.settle({ kind: 'retry', delayMs: 6 * hour })
      await scene.advance(hour)
      await way(scene)

      expect({ what, row: await scene.row() }).toEqual({ what, row: toldIn(waiting!, what) })
      await scene.close()
    }
  })

  it.each(Object.entries(whenItsClaimEnds))('are right about a running id: %s', async (what, ways) => {
    for (const way of ways) {
      const isCharged = what === 'one crash too many'
      const scene = await Scene.open(makeHarness, isCharged ? 1 : 3)
      await scene.push('b', 2)
      await scene.push('a', 1)
      await scene.claim()
      scene.name('at noon', hour)
      await scene.settle({ kind: 'retry', delayMs: hour })
      await scene.advance(2 * hour)
      await scene.claim(isCharged)
      scene.name('at six', 6 * hour)
      await scene.push('c', 0, 6 * hour)
      await way(scene)

      expect({ what, row: await scene.row() }).toEqual({ what, row: toldIn(running!, what) })
      await scene.close()
    }
  })

  function toldIn(rows: readonly (readonly string[])[], what: string): readonly string[] {
    return rows.find(([cell]) => plain(cell!) === what)!.slice(1)
  }
})

describe('the tables on retries', () => {
  const [delays, lives] = page.tables.filter(({ under }) => under === 'Retries').map(({ rows }) => rows)
  const { retry } = defineOrderedTask({ name: 'it' })
  /** Lowkiq draws a whole number from 0 to 29: all delays that are possible. */
  const possible = (failuresBefore: number) =>
    Array.from({ length: 30 }, (_, i) => retry.backoff(failuresBefore + 1, () => i / 30) / second)

  it('have the shortest and the longest delay of the default', () => {
    expect(delays).toEqual(
      delays!.map(([count]) => {
        const seconds = possible(Number(count))
        return [count, `${Math.min(...seconds)} s`, `${Math.max(...seconds)} s`]
      }),
    )
    expect(delays!.map(([count]) => count)).toEqual(['0', '1', '2', '3', '4', '5'])
    expect(polynomial()(6, () => 0)).toBe(retry.backoff(6, () => 0))
  })

  it('have the days that a number of retries takes on average', () => {
    const mean = (seconds: readonly number[]) => seconds.reduce((sum, one) => sum + one, 0) / seconds.length
    const days = (max: number) =>
      Array.from({ length: max }, (_, count) => mean(possible(count))).reduce((sum, one) => sum + one, 0) / 86_400

    expect(lives).toEqual(lives!.map(([max]) => [max, String(Math.floor(days(Number(max))))]))
    expect(lives!.map(([max]) => Number(max))).toEqual(Array.from({ length: 12 }, (_, i) => i + 14))
    expect(lives!.at(-1)![0]).toBe(String(retry.max))
  })
})

describe('the page of ordered jobs', () => {
  it('names every field that a handler gets of a job in its batch', () => {
    const [, handler] = page.prose.split('## The handler')
    const [told] = handler!.split('## Retries')
    const fields = ['OrderedContext', 'OrderedJob'].flatMap((name) => membersOf('core/task/contexts.ts', name))
    const inherited = ['id', 'progress', 'payloads']

    expect(fields.length).toBeGreaterThan(10)
    expect(fields.map(({ name }) => name).filter((name) => !told!.includes(name) && !inherited.includes(name))).toEqual(
      [],
    )
  })

  it('lists every field of the depth of an ordered queue except those on its state, and no other', () => {
    const told = page.rows('Depth and lag').flatMap(([cell]) => plain(cell!).split(', '))
    const fields = membersOf('stores/contract/queue-depth.ts', 'QueueDepth').map(({ name }) => name)

    expect(told.sort()).toEqual(
      fields.filter((name) => !['queue', 'paused', 'draining', 'lostAt'].includes(name)).sort(),
    )
  })

  it('is right about the options that an ordered task refuses', async () => {
    const task = defineOrderedTask({ name: 'it', id: () => '1' })
    const mill = millrace({ store: 'memory:', tasks: [task], queues: { other: {} } })
    for (const option of [{ priority: 1 }, { group: 'a' }, { queue: 'other' }] as object[])
      await expect(mill.enqueue(task, 'a', option)).rejects.toMatchObject({ code: 'job-invalid' })
    expect((await mill.queue('it').depth()).payloads).toBe(0)
    await mill.close()
  })

  it('is right that an id may be a number, which counts as its text', async () => {
    const task = defineOrderedTask({ name: 'it' })
    const mill = millrace({ store: 'memory:', tasks: [task] })
    const outcomes = [await mill.enqueue(task, 'a', { id: 1 }), await mill.enqueue(task, 'b', { id: '1' })]

    expect(outcomes.map(({ id, outcome }) => [id, outcome])).toEqual([
      ['1', 'added'],
      ['1', 'merged'],
    ])
    await mill.close()
  })
})
