/** The plan of claims: how many jobs are claimed at once, by the room, by what is fetched ahead and by what departures have shown. */

import { type AnyTask, defineTask, type QueueOptions } from 'millrace'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { type Queue, queueOf, queueOptionsSchema } from '#src/core/queue/queue.js'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { DepartureSizes, type InHand, Prefetch, roomFor as roomIn } from '#src/workers/claims/claim-plan.js'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'

const stored = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const none = { jobs: 0, slots: 0 }

interface Given {
  readonly limit?: number
  readonly by?: 'group'
  readonly window?: number
  readonly runMs?: number
  readonly queue?: QueueOptions
  readonly maxRunning?: number
  readonly task?: AnyTask
}

const plain = defineTask({ name: 't', queue: 'q', run: async () => {} })

/** Its spread is 60 ms, so jobs that depart together are to begin within 15. */
async function sizes(given: Given = {}) {
  const { limit = 10_000, by, window = 2_400, runMs = 1, queue = {}, maxRunning, task = plain } = given
  const { registry } = checkOptions({ store: 'memory:', tasks: [task], queues: { q: queue } }, new MemoryStore().traits)
  const throttle = throttleOf('q', { limit, window, ...(by === undefined ? {} : { by }) })
  const limits = { throttle, ...(maxRunning === undefined ? {} : { maxRunning }) }
  const limited = new LimitedQueues(await new MemoryStore().open([{ ...stored, ...limits }]))
  const prefetch = new Prefetch(10)
  if (runMs > 0) prefetch.ran('q', runMs)
  return new DepartureSizes(registry, limited, prefetch)
}

describe('the room for jobs of a throttled queue', () => {
  it('is the free slots, until a departure has shown that twice as many begin in time', async () => {
    const shown = await sizes()
    expect(shown.roomOf('q', 10, none)).toBe(10)
    shown.departed('q', 10, 7, 1)

    expect(shown.roomOf('q', 10, none)).toBe(20)
  })

  it('is kept after a departure that took more than half its time, and halved after one that took too long', async () => {
    const shown = await sizes()
    shown.departed('q', 20, 5, 1)
    shown.departed('q', 40, 8, 1)
    expect(shown.roomOf('q', 10, none)).toBe(40)
    shown.departed('q', 40, 16, 1)
    expect(shown.roomOf('q', 10, none)).toBe(20)
    shown.departed('q', 15, Number.POSITIVE_INFINITY, 1)

    expect(shown.roomOf('q', 10, none)).toBe(10)
  })

  it('is at most what the slots can begin within a quarter of the spread, given the length of the jobs', async () => {
    const shown = await sizes({ runMs: 6 })
    shown.departed('q', 500, 0, 1)
    expect(shown.roomOf('q', 10, none)).toBe(30)
    expect(shown.roomOf('q', 1, none)).toBe(3)
    expect(shown.roomOf('q', 0, none)).toBe(0)
    expect(shown.roomOf('q', -4, none)).toBeLessThanOrEqual(0)
  })

  it('is at most what the slots can begin within 20 ms, however long the spread, because jobs of other queues wait meanwhile', async () => {
    const shown = await sizes({ window: 3_600_000, runMs: 6 })
    shown.departed('q', 500, 0, 1)

    expect(shown.roomOf('q', 10, none)).toBe(40)
  })

  it('is at most a tenth of the limit, but never less than the free slots', async () => {
    const shown = await sizes({ limit: 300 })
    shown.departed('q', 500, 0, 1)

    expect(shown.roomOf('q', 10, none)).toBe(30)
    expect(shown.roomOf('q', 40, none)).toBe(40)
  })

  it('is limited by the limit of each group, however small: twice the groups of the last departure may wait', async () => {
    const shown = await sizes({ limit: 1, by: 'group' })
    shown.departed('q', 10, 0, 10)
    expect(shown.roomOf('q', 10, none)).toBe(20)
    shown.departed('q', 20, 0, 20)
    expect(shown.roomOf('q', 10, none)).toBe(40)
    shown.departed('q', 40, 0, 1)

    expect(shown.roomOf('q', 10, none)).toBe(10)
  })

  it('includes the jobs that wait for their instant already', async () => {
    const shown = await sizes()
    shown.departed('q', 50, 0, 1)

    expect(shown.roomOf('q', 6, { jobs: 90, slots: 4 })).toBe(10)
    expect(shown.roomOf('q', 6, { jobs: 100, slots: 4 })).toBe(0)
  })

  it.each([
    ['has not run yet', { runMs: 0 }],
    ['does not renew its leases', { queue: { renewLease: false } }],
    ['limits its running jobs', { maxRunning: 100 }],
    ['has an isolated task', { task: defineTask({ name: 't', queue: 'q', isolate: 'process' }) }],
    ['has batch tasks', { task: defineTask({ name: 't', queue: 'q', batch: { size: 5 }, run: async () => {} }) }],
  ])('is the free slots if the queue %s', async (_, given) => {
    const shown = await sizes(given)
    shown.departed('q', 50, 0, 1)

    expect(shown.roomOf('q', 6, { jobs: 4, slots: 4 })).toBe(6)
    expect(shown.inARow('q')).toBe(1)
  })
})

function measured(concurrency: number, runMs: Record<string, number>, claimMs: number): Prefetch {
  const prefetch = new Prefetch(concurrency)
  for (const [queue, ms] of Object.entries(runMs)) prefetch.ran(queue, ms)
  prefetch.claimed(claimMs)
  return prefetch
}

describe('the prefetch of a worker', () => {
  it('claims nothing ahead until it has measured something', () => {
    const prefetch = new Prefetch(10)
    expect(prefetch.ahead('a')).toBe(0)
    prefetch.ran('a', 1)
    expect(prefetch.ahead('a')).toBe(0)
    prefetch.claimed(1)
    expect(prefetch.ahead('a')).toBe(20)
    expect(prefetch.ahead('b')).toBe(0)
  })

  it('bridges two claims at the pace of all slots, but holds no job for longer than 20 ms', () => {
    expect(measured(10, { a: 2 }, 4).ahead('a')).toBe(40)
    expect(measured(10, { a: 2 }, 4_000).ahead('a')).toBe(100)
  })

  it('claims nothing ahead from a slow queue, and equally from all others', () => {
    const prefetch = measured(1, { slow: 20, a: 1, b: 5 }, 10)

    expect(prefetch.ahead('slow')).toBe(0)
    expect(prefetch.ahead('a')).toBe(prefetch.ahead('b'))
  })

  it('gives one slot as many jobs as it can begin in a quarter of a second, and at least one', () => {
    const prefetch = measured(1, { slow: 2_000, quick: 10, quicker: 0 }, 10)

    expect(prefetch.inARow('slow')).toBe(1)
    expect(prefetch.inARow('quick')).toBe(26)
    expect(prefetch.inARow('quicker')).toBeGreaterThan(1_000)
    expect(prefetch.inARow('unknown')).toBe(Number.POSITIVE_INFINITY)
  })

  it('fills two calls if each call costs money, and holds no job for longer than half a second', () => {
    const paid = (runMs: number, concurrency: number) => {
      const prefetch = new Prefetch(concurrency, 10)
      prefetch.ran('a', runMs)
      return [prefetch.ahead('a'), prefetch.worthwhile('a')]
    }

    expect(paid(0, 10)).toEqual([20, 10])
    expect(paid(100, 10)).toEqual([20, 10])
    expect(paid(100, 1)).toEqual([5, 5])
    expect(paid(10_000, 10)).toEqual([0, 0])
    expect(new Prefetch(10, 10).ahead('unknown')).toBe(0)
    expect(measured(10, { a: 2 }, 4).worthwhile('a')).toBe(0)
  })
})

const queue = (options: QueueOptions) => queueOf('q', v.parse(queueOptionsSchema, options))
/** What may be claimed of a queue that has no limits. */
const roomFor = (of: Queue, inHand: InHand, batchSize: number, most: number) =>
  roomIn(of, false, inHand, batchSize, most)
const inHand = (free: number, backlog = 0, ahead = 0, inARow = Number.POSITIVE_INFINITY, worthwhile = 0) => ({
  ...{ free, backlog, ahead, worthwhile, inARow, lacking: 0 },
})

it('the room is a batch of ids for each free slot and for each slot worth claiming ahead', () => {
  const orders = queue({ ordered: true })

  expect(roomFor(orders, inHand(3), 10, 250)).toBe(30)
  expect(roomFor(orders, inHand(3, 0, 4), 10, 250)).toBe(70)
  expect(roomFor(orders, inHand(3), 10, 25)).toBe(25)
  expect(roomFor(orders, inHand(-2, 2, 4), 10, 250)).toBe(20)
  expect(roomFor(orders, inHand(-3, 3, 4), 10, 250)).toBe(0)
  expect(roomFor(queue({}), inHand(3, 0, 4), 1, 250)).toBe(7)
})

it('the room is one batch if shards are exclusive, and nothing ahead', () => {
  const strict = queue({ ordered: true, exclusive: 'shard' })

  expect(roomFor(strict, inHand(3, 0, 4), 10, 250)).toBe(10)
  expect(roomFor(strict, inHand(3), 10, 7)).toBe(7)
  expect(roomFor(strict, inHand(0, 0, 4), 10, 250)).toBe(0)
  expect(roomFor(queue({ ordered: true, exclusive: 'shard', renewLease: false }), inHand(1), 3, 10)).toBe(3)
})

it('the room is one claim per slot if the lease is not renewed', () => {
  expect(roomFor(queue({ renewLease: false }), inHand(4), 1, 10)).toBe(10)
  expect(roomFor(queue({ ordered: true, renewLease: false }), inHand(0, 0, 9), 2, 10)).toBe(0)
})

it('the room is at most what one slot begins soon if the lease is not renewed, because others may be idle', () => {
  expect(roomFor(queue({ renewLease: false }), inHand(4, 0, 0, 3), 1, 10)).toBe(3)
  expect(roomFor(queue({ ordered: true, renewLease: false }), inHand(1, 0, 0, 1), 4, 10)).toBe(4)
  expect(roomFor(queue({}), inHand(4, 0, 0, 1), 1, 10)).toBe(4)
})

it('the room is 0 for less than a call is worth, unless a slot is free', () => {
  const paid = (free: number, ahead: number, worthwhile: number) =>
    roomFor(queue({}), inHand(free, Math.max(0, -free), ahead, undefined, worthwhile), 1, 10)

  expect(paid(-11, 20, 10)).toBe(0)
  expect(paid(-10, 20, 10)).toBe(10)
  expect(paid(0, 5, 5)).toBe(5)
  expect(paid(-1, 5, 5)).toBe(0)
  expect(paid(1, 0, 0)).toBe(1)
})

describe('the room for a limited queue', () => {
  const limited = (options: QueueOptions, ...rest: [InHand, number, number]) => roomIn(queue(options), true, ...rest)

  it('is what can start at once: the free slots, and nothing ahead', () => {
    expect(limited({}, inHand(3, 0, 40), 1, 250)).toBe(3)
    expect(limited({}, inHand(0, 0, 40), 1, 250)).toBe(0)
    expect(limited({}, inHand(-2, 2, 40), 1, 250)).toBe(0)
    expect(limited({ ordered: true }, inHand(3, 0, 40), 10, 250)).toBe(30)
    expect(limited({ ordered: true }, inHand(3), 10, 25)).toBe(25)
  })

  it('is the same if the lease is not renewed', () => {
    expect(limited({ renewLease: false }, inHand(4), 1, 10)).toBe(4)
    expect(limited({ renewLease: false }, inHand(40), 1, 10)).toBe(10)
  })

  it('is one batch if its shards are exclusive', () => {
    expect(limited({ ordered: true, exclusive: 'shard' }, inHand(3), 10, 250)).toBe(10)
  })
})

it('the room includes the jobs that a waiting batch still lacks, even if no slot is free', () => {
  const rows = queue({})

  expect(roomFor(rows, { ...inHand(0), lacking: 7 }, 10, 250)).toBe(7)
  expect(roomFor(rows, { ...inHand(-1), lacking: 7 }, 10, 250)).toBe(7)
  expect(roomFor(rows, { ...inHand(2), lacking: 7 }, 10, 250)).toBe(27)
  expect(roomIn(rows, true, { ...inHand(0), lacking: 7 }, 10, 250)).toBe(7)
})
