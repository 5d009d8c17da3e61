import type { StoredQueue } from 'millrace'
import type { Store } from 'millrace/store'
import * as v from 'valibot'
import { expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { queueOf, queueOptionsSchema } from '#src/core/queue/queue.js'
import type { WorkerRecord } from '#src/stores/contract/worker-registry.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { ownShards, type ShardsOf } from '#src/workers/claims/shard-owners.js'
import { ShardPicker } from '#src/workers/claims/shard-picker.js'
import { storedQueue } from '../stored-queue.js'

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
  const parts = { worker: 'me', queues, store, shardsOf, mono, random: () => 0 }
  return new ShardPicker({
    ...parts,
    stored: [stored('a', 3), stored('b', 5), stored('c', 2), stored('p', 1, 'plain')],
  })
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
