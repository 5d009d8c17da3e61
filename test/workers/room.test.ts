import * as v from 'valibot'
import { expect, it } from 'vitest'
import { type QueueOptions, queueOf, queueOptionsSchema } from '#src/core/queue.js'
import { roomFor } from '#src/workers/room.js'

const queue = (options: QueueOptions) => queueOf('q', v.parse(queueOptionsSchema, options))
const inHand = (free: number, backlog = 0, ahead = 0) => ({ free, backlog, ahead })

it('is a batch of ids for each free slot and each that is worth claiming ahead', () => {
  const orders = queue({ ordered: true })

  expect(roomFor(orders, inHand(3), 10, 250)).toBe(30)
  expect(roomFor(orders, inHand(3, 0, 4), 10, 250)).toBe(70)
  expect(roomFor(orders, inHand(3), 10, 25)).toBe(25)
  expect(roomFor(orders, inHand(-2, 2, 4), 10, 250)).toBe(20)
  expect(roomFor(orders, inHand(-3, 3, 4), 10, 250)).toBe(0)
  expect(roomFor(queue({}), inHand(3, 0, 4), 1, 250)).toBe(7)
})

it('is one batch where shards are exclusive, and nothing ahead', () => {
  const strict = queue({ ordered: true, exclusive: 'shard' })

  expect(roomFor(strict, inHand(3, 0, 4), 10, 250)).toBe(10)
  expect(roomFor(strict, inHand(3), 10, 7)).toBe(7)
  expect(roomFor(strict, inHand(0, 0, 4), 10, 250)).toBe(0)
  expect(roomFor(queue({ ordered: true, exclusive: 'shard', renewLease: false }), inHand(1), 3, 10)).toBe(3)
})

it('is one claim a slot where the lease is not renewed', () => {
  expect(roomFor(queue({ renewLease: false }), inHand(4), 1, 10)).toBe(10)
  expect(roomFor(queue({ ordered: true, renewLease: false }), inHand(0, 0, 9), 2, 10)).toBe(0)
})
