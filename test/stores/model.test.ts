import {
  auditBreaches,
  type CanonicalJob,
  compareStores,
  type HarnessMaker,
  memoryHarness,
  type SequenceKind,
  StoresDifferError,
} from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import type { Claimer, ClaimFrom } from '#src/stores/contract/claim.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { compare, comparedWithMemory, wholeStores } from './compared-with-memory.js'
import { harnesses } from './harnesses.js'

// The drills have as many other seeds, and those of a Sentinel; the proofs of models have thousands.
for (const name of wholeStores) {
  // It answers by the scripts of a single server, once that is found.
  if (name === 'redis-sentinel') continue
  // One whose claims end at two or three jobs, and one with limits. Queues that lie on several servers concern the first.
  comparedWithMemory(name, name === 'redis-cluster' ? [1_000] : [1_000, 1_002])
}

/** A join that is revived, or ended by a claim, needs a long history. Servers that take longer to be asked have none. */
for (const name of wholeStores)
  if (!name.startsWith('redis-'))
    describe(`the ${name} store compared with the memory store`, () => {
      it('gives the same answers and has the same state after every step of a long joined seed', {
        timeout: 120_000,
      }, async () => {
        expect(await compare(harnesses.get(name)!, { seed: 22, steps: 100, kind: 'joined' })).toEqual([])
      })
    })

describe('the comparison of stores', () => {
  /** What it covers is seen in the audit: that one store has the state of the other, which is the same store, shows nothing. */
  const long = { seed: 7, steps: 1_000, compare: 'answers' } as const

  it('covers ordered queues as widely, and their audit keeps the rules', async () => {
    const subject = await memoryHarness()
    await compareStores(await memoryHarness(), subject, { ...long, kind: 'ordered' })
    const entries = await subject.audit()

    const kinds = new Set(entries.filter(({ shard }) => shard !== undefined).map(({ kind }) => kind))

    // Nothing of them is kept, and the dead are no live jobs.
    expect([...kinds].sort()).toEqual(['claim', 'enqueue', 'leave', 'promote', 'requeue'])
    expect(auditBreaches(entries)).toEqual([])
  })

  it('covers every kind of audit entry in long runs', async () => {
    const subject = await memoryHarness()
    await compareStores(await memoryHarness(), subject, long)

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

/** Faults that only ordered queues have. */
const orderedFaults: typeof faults = {
  'a store that leaves payloads in a shard that was resharded': (harness) => ({
    dump: async () => {
      const state = await harness.dump()
      return { ...state, queues: state.queues.filter(({ shard }) => shard !== 2) }
    },
  }),
  'a store that forgets the dead entry of an id that waits': (harness) => ({
    dump: async () => {
      const state = await harness.dump()
      const isLive = (id: string, jobs: readonly CanonicalJob[]) =>
        jobs.some((job) => job.id === id && job.state !== 'dead')
      const queues = state.queues.map((queue) => ({
        ...queue,
        jobs: queue.jobs.filter(({ id, state }) => state !== 'dead' || !isLive(id, queue.jobs)),
      }))
      return { ...state, queues }
    },
  }),
  'a store that hands over payloads without their meta': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        claim: async (...asked: Parameters<typeof store.claim>) => {
          const claimed = await store.claim(...asked)
          const claims = claimed.claims.map((claim) => ({
            ...claim,
            ...(claim.payloads && { payloads: claim.payloads.map(({ meta: _, ...rest }) => rest) }),
          }))
          return { ...claimed, claims }
        },
      })
    },
  }),
  'a store that ignores how many payloads are wanted': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        claim: async (from: readonly ClaimFrom[], by: Claimer) =>
          store.claim(
            from.map(({ maxPayloads: _, ...rest }) => rest),
            by,
          ),
      })
    },
  }),
  'a store that knows nothing of shards in use': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        open: (queues: readonly QueueSettings[]) => store.open(queues.map(({ exclusive: _, ...rest }) => rest)),
      })
    },
  }),
}

/** Faults that only schedules have. */
const scheduledFaults: typeof faults = {
  'a store that ticks by an old idea of a schedule': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const { schedules } = store
      const tick = async (asked: Parameters<NonNullable<typeof schedules>['tick']>[0]) => {
        const { revision, nextAt: dueAt } = (await schedules!.get(asked.name)) ?? asked
        return schedules!.tick({ ...asked, revision, ...(dueAt === undefined ? {} : { dueAt }) })
      }
      return Object.assign(Object.create(store), { schedules: { ...schedules, tick } })
    },
  }),
  'a store that heeds no job of the tick before': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const { schedules } = store
      const tick = ({ unless: _, ...asked }: Parameters<NonNullable<typeof schedules>['tick']>[0]) =>
        schedules!.tick(asked)
      return Object.assign(Object.create(store), { schedules: { ...schedules, tick } })
    },
  }),
}

/** Faults that only joins have. */
const joinedFaults: typeof faults = {
  'a store that reports the first of several ends': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const withoutJoins = <Item extends object>(item: Item) =>
        ({ ...item, result: undefined, kind: 'complete' }) as Item
      return Object.assign(Object.create(store), {
        settle: (items: Parameters<typeof store.settle>[0]) =>
          store.settle(items.map((item, i) => (i === 0 || item.kind !== 'complete' ? item : withoutJoins(item)))),
      })
    },
  }),
  'a store that seals whatever it has': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const { joins } = store
      const seal: NonNullable<typeof joins>['seal'] = (join, sizes) =>
        joins!.seal(join, sizes).catch(() => 'gone' as const)
      return Object.assign(Object.create(store), { joins: { ...joins, seal } })
    },
  }),
  'a store that never sweeps': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const sweep = async () => ({ failed: [], more: false })
      return Object.assign(Object.create(store), { joins: { ...store.joins, sweep } })
    },
  }),
  'a store that lets members come again': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        enqueue: async (calls: Parameters<typeof store.enqueue>[0]) =>
          (await store.enqueue(calls)).map((answers) => answers.map((one) => (one === 'duplicate' ? 'added' : one))),
      })
    },
  }),
}

/** Faults that only steps and signals have. */
const steppedFaults: typeof faults = {
  'a store that keeps a step that is kept anew': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const steps = store.steps!
      const keep: typeof steps.keep = async (claim, step, leaseMs) => {
        const { queue, id } = claim
        await steps.forget({ queue, id }, step.name, 'step')
        return steps.keep(claim, step, leaseMs)
      }
      return Object.assign(Object.create(store), { steps: { ...steps, keep } })
    },
  }),
  'a store that never ends a wait in vain': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const sweep = async () => ({ woken: 0, more: false })
      return Object.assign(Object.create(store), { steps: { ...store.steps, sweep } })
    },
  }),
  'a store that releases a job instead of having it wait': (harness) => ({
    open: async () => {
      const store = await harness.open()
      return Object.assign(Object.create(store), {
        settle: (items: Parameters<typeof store.settle>[0]) =>
          store.settle(
            items.map(({ queue, id, fence, ...end }) =>
              end.kind === 'wait'
                ? { queue, id, fence, kind: 'release', delayMs: 0 }
                : ({ queue, id, fence, ...end } as (typeof items)[number]),
            ),
          ),
      })
    },
  }),
  'a store that takes data away from signals': (harness) => ({
    open: async () => {
      const store = await harness.open()
      const steps = store.steps!
      const signal: typeof steps.signal = (job, { name }) => steps.signal(job, { name })
      return Object.assign(Object.create(store), { steps: { ...steps, signal } })
    },
  }),
}

const kindsOfFaults: readonly (readonly [SequenceKind, typeof faults])[] = [
  ['plain', faults],
  ['ordered', orderedFaults],
  ['scheduled', scheduledFaults],
  ['joined', joinedFaults],
  ['stepped', steppedFaults],
]

describe('the comparison detects', () => {
  const cases = kindsOfFaults.flatMap(([kind, faults]) =>
    Object.entries(faults).map(([title, fault]) => [title, kind, fault] as const),
  )
  for (const [title, kind, fault] of cases) {
    it(`${title}, in ${kind} queues`, async () => {
      const faulty: HarnessMaker = async (options) => {
        const harness = await memoryHarness(options)
        return { ...harness, ...fault(harness), name: 'faulty' }
      }

      const found = await compare(faulty, { seed: 6, steps: 500, kind }).catch((error: unknown) => error)

      expect(found).toBeInstanceOf(StoresDifferError)
      expect((found as StoresDifferError).message).toMatch(
        /^faulty differs from memory in (its answer|its state|a join) at step \d+ of (ordered |scheduled |joined |stepped )?seed 6/,
      )
    })
  }
})
