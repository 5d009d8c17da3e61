/** Joins that end, or are taken away, while their producer still adds members. */

import { defineTask, many } from 'millrace'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

const sum = defineTask({ name: 'sum', queue: 'sums', run: async (n: number) => n })
const report = defineTask({ name: 'report', queue: 'reports', joins: { all: many(sum) }, run: async () => 'done' })
const tasks = [sum, report] as const
const id = 'november'
const size = 1_500

/** Inputs of which one comes only when this is done. */
async function* slow(at: number, done: () => Promise<unknown>) {
  for (let n = 0; n < size; n += 1) {
    if (n === at) await done()
    yield n
  }
}

describe.each(storeKinds)('on %s, the enqueue of a join of many members', (kind) => {
  const made = () => testMill({ tasks, queues: { reports: { retention: { results: 'none' } } } }, kind)
  type Made = ReturnType<typeof made>

  it.each<[string, (mill: Made) => Promise<unknown>]>([
    ['is cancelled', (mill) => mill.queue('reports').jobs.cancel([id])],
    ['is deleted', (mill) => mill.queue('reports').jobs.delete([id])],
  ])('adds no more of them and fails if the join %s', async (_, end) => {
    const mill = made()
    const all = slow(1_300, () => end(mill))
    await expect(mill.enqueue(report, undefined, { id, after: { all } })).rejects.toMatchObject({
      code: 'job-cancelled',
      message: expect.stringMatching(
        /^job 'november' in queue 'reports' was cancelled[\s\S]*at most 1500 of its members are stored, and run/,
      ),
    })
    expect((await mill.queue('sums').depth()).ready).toBe(1_250)
  })

  it('runs none of them twice if another producer has added them and the join has run', {
    timeout: 60_000,
  }, async () => {
    const mill = made()
    const other = async () => {
      const inputs = Array.from({ length: size }, (_, n) => n)
      const job = await mill.enqueue(report, undefined, { id, after: { all: inputs } })
      const worker = mill.worker({ concurrency: 50 })
      await worker.start()
      await job.result()
      await worker.stop()
    }
    const job = await mill.enqueue(report, undefined, { id, after: { all: slow(1_300, other) } })

    expect(job.outcome).toBe('added')
    const depth = await mill.queue('sums').depth()
    expect([depth.processed, depth.ready]).toEqual([size, 0])
  })
})

it.each(storeKinds)(
  'on %s, a join that a handler enqueues again after it was deleted waits for all its members',
  {
    timeout: 15_000,
  },
  async (kind) => {
    const starts = defineTask({
      name: 'starts',
      retry: { max: 2, backoff: () => 0 },
      run: async (_: unknown, ctx) => {
        const end = async () => {
          const { jobs } = await mill.queue('reports').jobs.list({ state: 'waiting' })
          if (ctx.job.attempt === 1) await mill.queue('reports').jobs.delete(jobs.map((job) => job.id))
        }
        await ctx.enqueue(report, undefined, { after: { all: slow(1_300, end) } })
      },
    })
    const mill = testMill({ tasks: [...tasks, starts] }, kind)
    const failed = recorded(mill, 'job.failed')
    const done = nextEvent(mill, 'job.completed', ({ queue }) => queue === 'reports')
    await mill.enqueue(starts, undefined)
    await mill.worker({ concurrency: 50 }).start()
    await done

    expect(failed).toHaveLength(1)
    expect((await mill.queue('reports').depth()).waiting).toBe(0)
  },
)

describe('the producer of a join that is cancelled', () => {
  it('learns it between two calls with large inputs', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks: [large, larger] })
    const enqueue = store.enqueue.bind(store)
    store.enqueue = async (calls) => {
      const answers = await enqueue(calls)
      await mill.queue('reports').jobs.cancel([id])
      return answers
    }
    const all = Array.from({ length: 60 }, () => 'x'.repeat(200_000))
    await expect(mill.enqueue(larger, undefined, { id, after: { all } })).rejects.toMatchObject({
      code: 'job-cancelled',
    })
    expect((await mill.queue('sums').depth()).ready).toBe(5)
  })

  it('learns it from the seal at the latest', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks })
    const { joins } = store
    const seal: typeof joins.seal = async (join, sizes) => {
      await mill.queue('reports').jobs.cancel([id])
      return joins.seal(join, sizes)
    }
    Object.assign(store, { joins: { ...joins, seal } })
    const all = Array.from({ length: size }, (_, n) => n)
    await expect(mill.enqueue(report, undefined, { id, after: { all } })).rejects.toMatchObject({
      code: 'job-cancelled',
    })
  })
})

describe('the producer of a join that dies before all members are added', () => {
  it.each([
    ['join-never-sealed', { sealWithin: 1 }],
    ['join-late', { within: 1 }],
  ])('learns that it is dead as %s, and can have it revived', { timeout: 60_000 }, async (reason, bounds) => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks })
    const all = slow(1_300, () => expect.poll(() => swept(store, mill)).toBe('dead'))
    const error = await mill
      .enqueue(report, undefined, { id, after: { all }, ...bounds })
      .catch((error: unknown) => error)

    expect(error).toMatchObject({ code: 'job-dead', reason })
    expect(String(error)).toMatch(/died before its 1500 members were all added[\s\S]*morgue revive reports november/)
    const worker = mill.worker({ concurrency: 50, queues: ['sums'] })
    await worker.start()
    await expect.poll(async () => (await mill.queue('sums').depth()).processed, { timeout: 20_000 }).toBe(size)
    expect(await mill.queue('reports').morgue.revive([id])).toBe(1)
    expect(await mill.job(report, id).status()).toBe('ready')
  })

  it('learns it again if the call is repeated before the join was revived', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks })
    async function* dying() {
      yield* Array.from({ length: 1_300 }, (_, n) => n)
      throw new Error('the producer dies')
    }
    const options = { id, sealWithin: 1 }
    await expect(mill.enqueue(report, undefined, { ...options, after: { all: dying() } })).rejects.toThrow(
      /producer dies/,
    )
    await expect.poll(() => swept(store, mill)).toBe('dead')
    const all = Array.from({ length: size }, (_, n) => n)
    await expect(mill.enqueue(report, undefined, { ...options, after: { all } })).rejects.toMatchObject({
      ...{ code: 'job-dead', reason: 'join-never-sealed' },
    })
  })

  it('gets its handle if a member has failed, and the result names that', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks })
    const all = slow(1_300, async () => {
      const { jobs } = await mill.queue('sums').jobs.list({ limit: 1 })
      await mill.queue('sums').jobs.bury([jobs[0]!.id])
    })
    const job = await mill.enqueue(report, undefined, { id, after: { all } })
    await expect(job.result()).rejects.toMatchObject({ code: 'job-dead', reason: 'join-member-dead' })
  })
})

/** The state of the join after a sweep. */
async function swept(store: MemoryStore, mill: ReturnType<typeof testMillOn>) {
  await store.joins.sweep('worker')
  return (await mill.queue('reports').jobs.get(id))?.state
}

describe('the producer of a join whose seal is sent again', () => {
  it('takes a join that has run meanwhile and left nothing for one that it has enqueued', {
    timeout: 60_000,
  }, async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks, queues: { reports: { retention: { results: 'none' } } } })
    const { joins } = store
    let seals = 0
    const seal: typeof joins.seal = async (join, sizes) => {
      const sealed = await joins.seal(join, sizes)
      seals += 1
      if (seals > 1) return sealed
      const done = nextEvent(mill, 'job.completed', ({ queue }) => queue === 'reports')
      const worker = mill.worker({ concurrency: 50 })
      await worker.start()
      await done
      await worker.stop()
      throw new StoreUnavailableError('the answer was lost.')
    }
    Object.assign(store, { joins: { ...joins, seal } })
    const all = Array.from({ length: size }, (_, n) => n)
    const job = await mill.enqueue(report, undefined, { after: { all } })

    expect([job.outcome, seals, await job.record()]).toEqual(['added', 2, undefined])
    expect((await mill.queue('reports').depth()).processed).toBe(1)
  })

  it('learns that only the seal is in doubt, and not that the join is open', async () => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks })
    const { joins } = store
    const seal: typeof joins.seal = async (join, sizes) => {
      await joins.seal(join, sizes)
      throw new StoreUnavailableError('the answer was lost.')
    }
    Object.assign(store, { joins: { ...joins, seal } })
    const all = Array.from({ length: size }, (_, n) => n)
    const error = await mill.enqueue(report, undefined, { id, after: { all } }).catch((error: unknown) => error)

    expect(error).toMatchObject({ code: 'store-unavailable', inDoubt: true })
    expect(String(error)).toMatch(
      /join 'november' in queue 'reports' is stored with all its members, and only its seal/,
    )
    expect(String(error)).not.toMatch(/is open/)
  })
})

it('the producer of a join learns that it is left open if there is no room for all its large inputs', async () => {
  const mill = testMill({ tasks: [large, larger], queues: { sums: { maxPending: 10 } } })
  const all = Array.from({ length: 60 }, () => 'x'.repeat(200_000))
  await expect(mill.enqueue(larger, undefined, { id, after: { all } })).rejects.toMatchObject({
    code: 'queue-full',
    message: expect.stringMatching(/The join is stored, with at most 60 of its members, and is open/),
  })
})

const large = defineTask({ name: 'large', queue: 'sums', run: async (text: string) => text.length })
const larger = defineTask({ name: 'larger', queue: 'reports', joins: { all: many(large) }, run: async () => {} })
