/** How many claims of a worker are under way at once. */

import { defineOrderedTask, defineTask, type MillOptions, type WorkerOptions } from 'millrace'
import type { Claimed, Claimer, ClaimFrom, StoreTraits } from 'millrace/store'
import { expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

const full = 20
const jobs = 400

/** A store that notes how many claims were under way when one was made, and whether the last answer was full. */
class GaugedStore extends MemoryStore {
  readonly sent: { readonly underWay: number; readonly afterFull: boolean }[] = []
  underWay = 0
  /** Called before a claim is answered, which comes a turn of the event loop later; may change the answer. */
  answering: (answer: Claimed) => Claimed = (answer) => answer
  override readonly traits: StoreTraits
  #lastWasFull = false

  constructor(remote = false) {
    super()
    this.traits = { ...memoryTraits, maxClaim: full, remote }
  }

  async left() {
    const [depth] = (await this.depth(['q'])).depths
    return { ready: depth!.ready, running: depth!.running }
  }

  override async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    if (from[0]!.limit === 0) return super.claim(from, by)
    this.underWay += 1
    this.sent.push({ underWay: this.underWay, afterFull: this.#lastWasFull })
    try {
      const made = await super.claim(from, by)
      await new Promise(setImmediate)
      const answer = this.answering(made)
      this.#lastWasFull = answer.claims.length === full
      return answer
    } finally {
      this.underWay -= 1
    }
  }
}

const blank = defineTask({ name: 'blank', queue: 'q', run: async () => {} })

/** A worker that has not started yet, on a store with jobs. */
async function filled(store: GaugedStore, options: Omit<MillOptions, 'store'> = {}, worker: WorkerOptions = {}) {
  const m = testMillOn(store, { tasks: [blank], ...options })
  await m.enqueueMany(
    blank,
    Array.from({ length: jobs }, (_, i) => i),
  )
  const ran = recorded(m, 'job.completed')
  return { ran, running: m.worker({ concurrency: 100, ...worker }) }
}

it('a worker sends two claims at once while answers are full, otherwise one, and never three', async () => {
  const store = new GaugedStore()
  const { ran, running } = await filled(store)
  await running.start()
  await expect.poll(() => ran.length).toBe(jobs)

  expect(new Set(ran.map(({ id }) => id)).size).toBe(jobs)
  expect(store.sent.some(({ underWay }) => underWay === 2)).toBe(true)
  for (const { underWay, afterFull } of store.sent) expect(underWay).toBeLessThanOrEqual(afterFull ? 2 : 1)
})

it.each<[string, GaugedStore, Omit<MillOptions, 'store'>, WorkerOptions]>([
  ['of a remote store, whose settles share no commit', new GaugedStore(true), {}, {}],
  ['if the worker stays on a queue', new GaugedStore(), { queues: { q: { iterations: 2 } } }, {}],
  ['if the selector asks for heads', new GaugedStore(), {}, { selector: 'lag' }],
  ['if jobs must begin at once', new GaugedStore(), { queues: { q: { maxRunning: full } } }, {}],
])('a worker sends one claim at a time %s', async (_, store, options, worker) => {
  const { ran, running } = await filled(store, options, worker)
  await running.start()
  await expect.poll(() => ran.length).toBe(jobs)

  expect(Math.max(...store.sent.map(({ underWay }) => underWay))).toBe(1)
})

it('a worker sends one claim at a time if the queue is ordered', async () => {
  const store = new GaugedStore()
  const orders = defineOrderedTask({ name: 'orders', id: String, run: async () => {} })
  const m = testMillOn(store, { tasks: [orders] })
  await m.enqueueMany(
    orders,
    Array.from({ length: jobs }, (_, i) => i),
  )
  const ran = recorded(m, 'job.completed')
  await m.worker({ concurrency: 100 }).start()
  await expect.poll(() => ran.length).toBe(jobs)

  expect(Math.max(...store.sent.map(({ underWay }) => underWay))).toBe(1)
})

it('claims under way take at most as many jobs as the worker may before it is replaced', async () => {
  const store = new GaugedStore()
  const { running } = await filled(store, {}, { maxJobs: 110 })
  await running.start()
  await running.finished()

  expect(await store.left()).toEqual({ ready: jobs - 110, running: 0 })
})

it('claims under way are awaited when the worker stops, and leave nothing claimed', async () => {
  const store = new GaugedStore()
  const { ran, running } = await filled(store)
  let stopped: Promise<unknown> | undefined
  store.answering = (answer) => {
    if (store.underWay === 2) stopped ??= running.stop()
    return answer
  }
  await running.start()
  await expect.poll(() => stopped !== undefined).toBe(true)
  await stopped

  expect(store.underWay).toBe(0)
  expect(await store.left()).toEqual({ ready: jobs - ran.length, running: 0 })
})

it.each<[string, (answer: Claimed) => Claimed]>([
  ['is lost', () => raise(new StoreUnavailableError('the answer was lost', { inDoubt: true }))],
  ['may lack jobs', (answer) => ({ ...answer, isInDoubt: true })],
])('claims under way end before the worker looks for lost claims, if an answer %s', async (_, doubtful) => {
  const store = new GaugedStore()
  const looks: number[] = []
  const { held } = store.workers
  store.workers.held = (...args) => {
    looks.push(store.underWay)
    return held.apply(store.workers, args)
  }
  let isDoubtful = false
  store.answering = (answer) => {
    if (isDoubtful || store.underWay < 2) return answer
    isDoubtful = true
    return doubtful(answer)
  }
  const { ran, running } = await filled(store)
  await running.start()
  await expect.poll(() => ran.length, { timeout: 10_000 }).toBe(jobs)

  expect(new Set(ran.map(({ id }) => id)).size).toBe(jobs)
  expect(looks.length).toBeGreaterThan(0)
  for (const underWay of looks) expect(underWay).toBe(0)
})

function raise(error: Error): never {
  throw error
}
