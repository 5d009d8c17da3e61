import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { type Queue, type QueueOptions, queueOf, queueOptionsSchema } from '#src/core/queue/queue.js'
import { type InHand, roomFor as roomIn } from '#src/workers/claims/claim-plan.js'

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
