import type { StoredQueue } from 'millrace'
import type { Store } from 'millrace/store'
import * as v from 'valibot'
import { expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { queueOf, queueOptionsSchema, type ShardOrder } from '#src/core/queue/queue.js'
import type { WorkerRecord } from '#src/stores/contract/worker-registry.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { ownShards, type ShardsOf } from '#src/workers/claims/shard-owners.js'
import {
  type KnownShard,
  ShardPicker,
  ShardRound,
  type ShardSequence,
  shardSequence,
} from '#src/workers/claims/shard-picker.js'
import { givenSurroundings } from '../../runtime/given-surroundings.js'
import { storedQueue } from '../../stored-queue.js'

const stored = (name: string, shards: number, kind: 'plain' | 'ordered' = 'ordered') =>
  storedQueue(name, { kind, shards })
type Seen = WorkerRecord & { readonly seenAt: number }
const seen = (id: string, seenAt: number, ...queues: string[]): Seen => ({
  id,
  seenAt,
  queues,
  host: 'h',
  boot: 'b',
  pidns: '1',
  pid: 1,
  ticks: 1,
  concurrency: 1,
  running: 0,
  startedAt: 0,
})

/** Shards of a worker `me` that serves queues a and c and the plain queue p, while b is another's. */
function shards(
  options: { shardsOf?: ShardsOf; workers?: Seen[]; later?: StoredQueue[]; shared?: boolean; mono?: () => number } = {},
) {
  const queues = ['a', 'c', 'p'].map((name) =>
    queueOf(
      name,
      v.parse(queueOptionsSchema, { ordered: name !== 'p', shardOrder: name === 'p' ? undefined : 'sequential' }),
    ),
  )
  const { shardsOf, workers = [], later, shared = true, mono = () => 0 } = options
  const store = {
    traits: { ...memoryTraits, shared },
    ...(later && { records: { queues: async () => later } }),
    workers: { list: async () => workers },
  } as unknown as Store
  const surroundings = givenSurroundings({ worker: 'me', mono, random: () => 0 })
  const all = [stored('a', 3), stored('b', 5), stored('c', 2), stored('p', 1, 'plain')]
  return new ShardPicker(surroundings, store, queues, all, shardsOf)
}

const asked = (subject: ShardPicker, queue: string) => subject.next(queue).map(({ shard }) => shard)

it("all shards are a worker's own if nobody else serves the queue, and a plain queue has none", async () => {
  const subject = shards({ workers: [seen('me', 5, 'a', 'c', 'p'), seen('other', 5, 'b')] })
  await subject.refresh()

  expect(asked(subject, 'a')).toEqual([0, 1, 2])
  expect(subject.next('p')).toEqual([{ queue: 'p' }])
  expect(subject.every('c')).toEqual([
    { queue: 'c', shard: 0 },
    { queue: 'c', shard: 1 },
  ])
})

it('shards are shared among recently seen workers, and only in a shared store', async () => {
  const workers = [seen('me', 100_000, 'a'), seen('other', 110_000, 'a'), seen('dead', 79_999, 'a')]
  const subject = shards({ workers, later: [stored('a', 40)] })
  await subject.refresh()

  expect(asked(subject, 'a')).toEqual(ownShards('me', ['me', 'other'], 'a', 40))
  const alone = shards({ workers, later: [stored('a', 40)], shared: false })
  await alone.refresh()
  expect(asked(alone, 'a')).toHaveLength(40)
})

it("a worker's own shards follow the stored number", async () => {
  const subject = shards({ later: [stored('a', 5), stored('foreign', 7)] })
  expect(asked(subject, 'a')).toEqual([0, 1, 2])
  subject.heard({ queue: 'a' })
  await subject.refresh()

  expect(asked(subject, 'a')).toHaveLength(5)
})

it('shards are dealt to a member over all ordered queues of the mill, in the order of their declaration', () => {
  const [first, second] = [0, 1].map((member) => shards({ shardsOf: { member, members: 2 } }))

  expect([asked(first!, 'a'), asked(first!, 'c')]).toEqual([[0, 2], [0]])
  expect([asked(second!, 'a'), asked(second!, 'c')]).toEqual([[1], [1]])
})

it("a function may pick a worker's own shards; an error or an unknown shard is a mistake in the configuration", () => {
  const picky = shards({ shardsOf: (all) => all.filter(({ queue, shard }) => queue === 'a' && shard > 0) })
  expect([asked(picky, 'a'), asked(picky, 'c')]).toEqual([
    [1, 2],
    [0, 1],
  ])

  const inventive = shards({ shardsOf: () => [{ queue: 'a', shard: 9 }] })
  expect(() => inventive.next('a')).toThrow('shardsOf: picked shard 9 of queue "a", which it was not given')
  const broken = shards({
    shardsOf: () => {
      throw new Error('no idea')
    },
  })
  expect(() => broken.next('a')).toThrow(ConfigError)
  expect(() => broken.next('a')).toThrow('shardsOf: threw: no idea')
})

it('a queue with no shard for this member belongs to others, until nobody has looked at it for long', () => {
  let now = 0
  const [first, second] = [0, 1].map((member) => shards({ shardsOf: { member, members: 2 }, mono: () => now }))
  const none = shards({ shardsOf: (all) => all.filter(({ queue }) => queue === 'a'), mono: () => now })

  expect([first!, second!].map((subject) => ['a', 'c', 'p'].map((queue) => subject.isForOthers(queue)))).toEqual([
    [false, false, false],
    [false, false, false],
  ])
  expect(['a', 'c', 'p'].map((queue) => none.isForOthers(queue))).toEqual([false, true, false])
  now = 10_000
  expect(none.isForOthers('c')).toBe(false)
  none.next('c')
  expect(none.isForOthers('c')).toBe(true)
  expect(shards({ mono: () => now }).isForOthers('a')).toBe(false)
})

it('a claim shows which queues are empty: those asked completely, before the one that granted', () => {
  const subject = shards({ shardsOf: { member: 0, members: 2 } })
  const nothing = { now: 0, claims: [], crashed: [], buried: [], waits: [], more: false }
  const own = subject.next('a')

  expect(subject.answered([...own, { queue: 'p' }], nothing)).toEqual(['p'])
  const others = subject.next('a')
  expect(others).toEqual([{ queue: 'a', shard: 1 }])
  expect(subject.answered([...others, { queue: 'p' }], { ...nothing, queue: 'p' })).toEqual(['a'])
  expect(subject.answered([...subject.next('c'), { queue: 'p' }], { ...nothing, queue: 'c' })).toEqual([])
})

const asGiven: ShardSequence = { needsHeads: true, of: (shards) => shards.map(({ shard }) => shard) }
const split = { own: [1, 3], others: [0, 2, 4] }

function roundOf(line = asGiven) {
  let now = 0
  const subject = new ShardRound(line, () => now)
  return {
    subject,
    pass: (ms: number) => {
      now += ms
    },
    next: () => subject.next(split).join(''),
    empty: (...shards: number[]) => subject.foundEmpty(shards, split),
  }
}

it('a round asks its own shards, then the others if these grant nothing, and is empty if those grant nothing either', () => {
  const { next, empty } = roundOf()

  expect([next(), next()]).toEqual(['13', '13'])
  expect(empty(1)).toBe(false)
  expect(next()).toBe('3')
  expect(empty(3)).toBe(false)
  expect(next()).toBe('024')
  expect(empty(0, 2)).toBe(false)
  expect(empty(4)).toBe(true)
})

it('a round goes back to its own shards after every grant', () => {
  const { subject, next, empty } = roundOf()
  empty(1, 3)
  expect(next()).toBe('024')
  subject.granted()

  expect(next()).toBe('13')
})

it('a round asks all shards on news or after it was empty: its own first, and before them the due ones', () => {
  const { subject, next, empty } = roundOf()
  expect(next()).toBe('13')
  subject.heard()
  expect(next()).toBe('13024')
  subject.heard(4)
  expect(next()).toBe('41302')
  expect(empty(4, 1, 3, 0, 2)).toBe(true)

  expect(next()).toBe('13024')
})

it('a round checks the others after ten seconds of its own work, and then its own before it is empty', () => {
  const { subject, pass, next, empty } = roundOf()
  pass(9_999)
  subject.granted()
  expect(next()).toBe('13')
  pass(1)
  subject.granted()
  expect(next()).toBe('024')
  expect(empty(0, 2, 4)).toBe(false)
  expect(next()).toBe('13')
  subject.granted()
  expect(next()).toBe('13')
  expect([empty(1, 3), empty(0, 2, 4)]).toEqual([false, true])
})

it('a round needs the ages of heads while it grants, ten times a second, and passes them on with their growth', () => {
  const seen: unknown[] = []
  const { subject, pass } = roundOf({
    needsHeads: true,
    of: (shards) => {
      seen.push(shards)
      return shards.map(({ shard }) => shard)
    },
  })
  expect(subject.wantsHeads).toBe(false)
  subject.granted()
  expect(subject.wantsHeads).toBe(true)
  subject.onHeads([
    { queue: 'q', shard: 1, ageMs: 7 },
    { queue: 'q', shard: 3 },
  ])
  expect(subject.wantsHeads).toBe(false)
  pass(100)
  expect(subject.wantsHeads).toBe(true)
  subject.next({ own: [1, 3, 5], others: [] })
  expect(seen).toEqual([
    [
      { shard: 1, toldMs: 100, headAgeMs: 107 },
      { shard: 3, toldMs: 100 },
      { shard: 5, toldMs: Number.POSITIVE_INFINITY },
    ],
  ])
  subject.foundEmpty([1, 3, 5], { own: [1, 3, 5], others: [] })
  expect(subject.wantsHeads).toBe(false)
})

it('a round leaves out what its sequence leaves out, but never everything', () => {
  const only3 = roundOf({
    needsHeads: false,
    of: (shards) => shards.map(({ shard }) => shard).filter((shard) => shard === 3),
  })
  expect(only3.next()).toBe('3')
  expect(only3.empty(3)).toBe(true)

  const none = roundOf({ needsHeads: false, of: () => [] })
  expect(none.next()).toBe('13024')
  expect(none.empty(1, 3, 0, 2, 4)).toBe(true)
  expect(none.next()).toBe('13024')
})

const line = (shardOrder: ShardOrder) =>
  shardSequence(queueOf('orders', v.parse(queueOptionsSchema, { ordered: true, shardOrder })), () => 0.5)
const known = (shard: number, headAgeMs?: number, toldMs = 0): KnownShard =>
  headAgeMs === undefined ? { shard, toldMs } : { shard, headAgeMs, toldMs }
const never = Number.POSITIVE_INFINITY

it('by lag the oldest head comes first and a shard without a ready job last', () => {
  expect(line('lag').of([known(0), known(1, 5), known(2, 50), known(3, 0)])).toEqual([2, 1, 3, 0])
})

it('by lag a shard without news for a second comes before all others, the longest silent one first', () => {
  const shards = [
    known(0, 99_000),
    known(1, undefined, 1_001),
    known(2, 5, 3_000),
    known(3, undefined, never),
    known(4, undefined, never),
  ]

  expect(line('lag').of(shards)).toEqual([3, 4, 2, 1, 0])
})

it('sequential starts one shard later each time', () => {
  const { of } = line('sequential')
  const shards = [known(0), known(1), known(2)]

  expect([of(shards), of(shards), of(shards), of(shards)]).toEqual([
    [0, 1, 2],
    [1, 2, 0],
    [2, 0, 1],
    [0, 1, 2],
  ])
  expect(of([])).toEqual([])
})

it('a function gets the shards with their known ages, and a random source', () => {
  const given: unknown[] = []
  const { of } = line((shards, random) => {
    given.push(shards, random())
    return [2, 2, 0]
  })

  expect(of([known(0), known(2, 7)])).toEqual([2, 0])
  expect(given).toEqual([[{ shard: 0 }, { shard: 2, headAgeMs: 7 }], 0.5])
})

it('an error or an unknown shard from a function is a mistake in the configuration', () => {
  const broken = line(() => {
    throw new Error('no idea')
  })

  expect(() => broken.of([known(0)])).toThrow(ConfigError)
  expect(() => broken.of([known(0)])).toThrow("queue 'orders' is not valid:\n  shardOrder: threw: no idea")
  expect(() => line(() => [7]).of([known(0), known(1)])).toThrow('shardOrder: named 7; it was given the shards 0, 1')
})
