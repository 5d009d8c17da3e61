import { auditBreaches, compareStores, type HarnessMaker, memoryHarness, StoresDifferError } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { harnesses } from './harnesses.js'

/** A Redis of several servers runs what a single one runs, and takes longer to be asked. */
const seedsOf = (name: string) => Array.from({ length: name.startsWith('redis-') ? 8 : 40 }, (_, i) => 1_000 + i)
const steps = 60

async function compare(makeSubject: HarnessMaker, options: { seed: number; steps: number }): Promise<string[]> {
  const [model, subject] = [await memoryHarness(), await makeSubject()]
  try {
    await compareStores(model, subject, options)
    return auditBreaches(await subject.audit())
  } finally {
    await model.close()
    await subject.close()
  }
}

for (const [name, makeHarness] of harnesses) {
  describe(`the ${name} store beside the memory store`, () => {
    for (const seed of seedsOf(name)) {
      it(`answers and holds the same after every step of seed ${seed}`, async () => {
        expect(await compare(makeHarness, { seed, steps })).toEqual([])
      })
    }
  })
}

describe('the comparison', () => {
  it('reaches far: long runs make every kind of audit entry', async () => {
    const subject = await memoryHarness()
    await compareStores(await memoryHarness(), subject, { seed: 7, steps: 2_000 })

    const kinds = new Set((await subject.audit()).map(({ kind }) => kind))

    expect([...kinds].sort()).toEqual(['bury', 'claim', 'enqueue', 'keep', 'leave', 'promote', 'requeue', 'revive'])
  })
})

/** Stores with one fault each: the comparison must see every one of them. */
const faults: Record<string, (harness: Awaited<ReturnType<HarnessMaker>>) => Partial<typeof harness>> = {
  'a store that says ok to a lost settle': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        settle: async (items: Parameters<typeof store.settle>[0]) => (await store.settle(items)).map(() => 'ok'),
      })
    },
  }),
  'a store that says ok to the last of several extends and does nothing': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        extend: async (items: Parameters<typeof store.extend>[0]) => [
          ...(await store.extend(items.slice(0, -1))),
          ...(items.length > 0 ? ['ok'] : []),
        ],
      })
    },
  }),
  'a store whose clock is a millisecond slow': (harness) => ({
    advance: (ms: number) => harness.advance(Math.max(0, ms - 1)),
  }),
  'a store that keeps another priority than it was given': (harness) => ({
    dump: async () => {
      const state = await harness.dump()
      const queues = state.queues.map((queue) => ({
        ...queue,
        jobs: queue.jobs.map((job) => ({ ...job, priority: Math.max(-2, job.priority) })),
      }))
      return { ...state, queues }
    },
  }),
}

describe('the comparison sees', () => {
  for (const [title, fault] of Object.entries(faults)) {
    it(title, async () => {
      const faulty: HarnessMaker = async (options) => {
        const harness = await memoryHarness(options)
        return { ...harness, ...fault(harness), name: 'faulty' }
      }

      const found = await compare(faulty, { seed: 3, steps: 500 }).catch((error: unknown) => error)

      expect(found).toBeInstanceOf(StoresDifferError)
      expect((found as StoresDifferError).message).toMatch(
        /^faulty differs from memory in its (answer|state) at step \d+ of seed 3/,
      )
    })
  }
})
