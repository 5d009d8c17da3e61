import * as v from 'valibot'
import { expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { queueOf, queueOptionsSchema, type ShardOrder } from '#src/core/queue/queue.js'
import { type KnownShard, shardSequence } from '#src/workers/claims/shard-picker.js'

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
