/** The rung claims of a worker, which go along with its rests, on a store that makes them when a queue is rung. */

import { type AnyTask, defineOrderedTask, defineTask, type Mill, type MillOptions, type WorkerOptions } from 'millrace'
import type { Claimed, Claimer, ClaimFrom, Rung } from 'millrace/store'
import { expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { processSoloGate } from '#src/runtime/solo-gate.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

interface RungClaim {
  readonly from: readonly ClaimFrom[]
  readonly by: Claimer
  readonly forMs: number
  readonly signal: AbortSignal
}

/** A memory store that makes claims when a wait ends, and notes all claims and waits. */
class RingingStore extends MemoryStore {
  readonly rungClaims: RungClaim[] = []
  claims = 0
  waits = 0
  /** Called before a claim that went along is made. */
  making: (rungClaim: RungClaim) => Promise<void> | void = () => {}

  override claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    if (from[0]!.limit > 0) this.claims += 1
    return super.claim(from, by)
  }

  override wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.waits += 1
    return super.wait(queues, forMs, signal)
  }

  async claimWhenRung(from: readonly ClaimFrom[], by: Claimer, forMs: number, signal: AbortSignal): Promise<Rung> {
    const rungClaim = { from, by, forMs, signal }
    this.rungClaims.push(rungClaim)
    const queues = from.map(({ queue }) => queue)
    const rung = await super.wait(queues, forMs, signal)
    await this.making(rungClaim)
    return { rung, claimed: await super.claim(from, by) }
  }
}

const blank = defineTask({ name: 'blank', queue: 'q', run: async () => {} })

async function started(store: RingingStore, options: Omit<MillOptions, 'store'> = {}, worker: WorkerOptions = {}) {
  const m = testMillOn(store, { tasks: [blank], ...options })
  const running = m.worker(worker)
  await running.start()
  return { m, running }
}

async function enqueued(m: Mill, task: AnyTask = blank): Promise<void> {
  const done = nextEvent(m, 'job.completed')
  await m.enqueue(task as typeof blank, 1)
  await done
}

/** The store of a worker that rests with a claim, because it was just rung. */
async function rested(options: Omit<MillOptions, 'store'> = {}, worker: WorkerOptions = {}) {
  const store = new RingingStore()
  const { m, running } = await started(store, options, worker)
  await expect.poll(() => store.waits).toBeGreaterThan(0)
  await enqueued(m)
  await expect.poll(() => store.rungClaims.length).toBeGreaterThan(0)
  return { store, m, running }
}

it('claims with a wait bring the next job without another trip', async () => {
  const { store, m } = await rested({ queues: { q: { lease: '30s' } } })
  const { claims } = store
  await enqueued(m)

  expect(store.claims).toBe(claims)
  expect(store.rungClaims[0]).toMatchObject({
    from: [{ queue: 'q', limit: 2, leaseMs: 30_000 }],
    by: { leaseMs: 30_000 },
  })
})

it('claims with a wait take at most as many jobs as there is room for', async () => {
  const slow = defineTask({ name: 'slow', queue: 'q', run: () => new Promise((resolve) => setTimeout(resolve, 25)) })
  const store = new RingingStore()
  const { m } = await started(store, { tasks: [slow] }, { concurrency: 1 })
  while (store.rungClaims.length === 0) await enqueued(m, slow)

  expect(store.rungClaims[0]!.from).toMatchObject([{ queue: 'q', limit: 1 }])
})

it('claims with a wait last at most a second, and at most a tenth of a lease', async () => {
  expect((await rested()).store.rungClaims[0]!.forMs).toBe(1_000)
  expect((await rested({ queues: { q: { lease: '5s' } } })).store.rungClaims[0]!.forMs).toBe(500)
  expect((await rested({ queues: { q: { longPoll: '50ms' } } })).store.rungClaims[0]!.forMs).toBe(50)
})

it('claims with a wait end with the first silent rest', async () => {
  const { store } = await rested({ queues: { q: { longPoll: '20ms' } } })
  const { waits } = store
  await expect.poll(() => store.waits).toBeGreaterThan(waits + 2)

  expect(store.rungClaims).toHaveLength(1)
})

it('claims with a wait can cover several queues', async () => {
  const other = defineTask({ name: 'other', queue: 'r', run: async () => {} })
  const { store, m } = await rested({ tasks: [blank, other] })
  await enqueued(m, other)

  expect(store.rungClaims[0]!.from.map(({ queue }) => queue).sort()).toEqual(['q', 'r'])
})

it.each<[string, Omit<MillOptions, 'store'>, WorkerOptions]>([
  ['limits', { queues: { q: { maxRunning: 5 } } }, {}],
  ['a selector that asks for heads', {}, { selector: 'lag' }],
  [
    'batches',
    { tasks: [defineTask({ name: 'batch', queue: 'q', batch: { size: 2, wait: 1 }, run: async () => {} })] },
    {},
  ],
  ['an order', { tasks: [defineOrderedTask({ name: 'orders', queue: 'q', id: String, run: async () => {} })] }, {}],
])('claims with a wait are not sent if a queue has %s', async (_, options, worker) => {
  const store = new RingingStore()
  const { m } = await started(store, options, worker)
  await expect.poll(() => store.waits).toBeGreaterThan(0)
  const [task = blank] = options.tasks ?? []
  for (let i = 0; i < 3; i += 1) await enqueued(m, task)

  expect(store.rungClaims).toEqual([])
})

it('claims with a wait leave nothing claimed when the worker is stopped, whatever they bring', async () => {
  const { store, m, running } = await rested()
  const ran = recorded(m, 'job.completed')
  store.making = async () => void (await m.enqueue(blank, 2))
  await running.stop()

  expect(store.rungClaims.at(-1)!.signal.aborted).toBe(true)
  expect(ran).toEqual([])
  expect((await store.depth(['q'])).depths[0]).toMatchObject({ ready: 1, running: 0 })
})

it('claims with a wait are over before a claim is made alone in this process', async () => {
  const { store, m } = await rested()
  let isOver = false
  const ran = recorded(m, 'job.started')
  store.making = async () => {
    store.making = () => {}
    await m.enqueue(blank, 2)
    isOver = true
  }
  const soloTurn = processSoloGate.seek()
  await soloTurn.admitted

  expect(isOver).toBe(true)
  // The job that it brought has ended too: nothing is held here.
  expect(ran).toHaveLength(1)
  const { claims, rungClaims } = store
  await m.enqueue(blank, 3)
  expect([store.claims, store.rungClaims.length]).toEqual([claims, rungClaims.length])
  const done = nextEvent(m, 'job.completed')
  soloTurn.leave()
  await done
})

it('claims with a wait are looked for if their answer is lost', async () => {
  const { store, m } = await rested()
  const released = nextEvent(m, 'job.released')
  store.making = async ({ from, by }) => {
    store.making = () => {}
    await store.claim(from, by)
    throw new StoreUnavailableError('the answer was lost', { inDoubt: true })
  }
  const completed = nextEvent(m, 'job.completed')
  await m.enqueue(blank, 2)

  expect(await released).toMatchObject({ reason: 'unheard' })
  await completed
})
