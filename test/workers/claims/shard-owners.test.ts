import { describe, expect, it } from 'vitest'
import { dealt, ownShards } from '#src/workers/claims/shard-owners.js'

const shardsOf = (queue: string, count: number) => Array.from({ length: count }, (_, shard) => ({ queue, shard }))
const table = (refs: readonly { queue: string; shard: number }[]) =>
  refs.map(({ queue, shard }) => `${queue}${shard}`).join(' ')

describe('dealt shards', () => {
  it('go round robin to the members, continuing from queue to queue', () => {
    const all = [...shardsOf('a', 3), ...shardsOf('b', 5), ...shardsOf('c', 2)]

    expect(table(dealt(all, 0, 2))).toBe('a0 a2 b1 b3 c0')
    expect(table(dealt(all, 1, 2))).toBe('a1 b0 b2 b4 c1')
    expect(table(dealt(all, 0, 1))).toBe(table(all))
    expect(table(dealt(all, 11, 12))).toBe('')
  })
})

describe('rendezvous hashing', () => {
  const workers = Array.from({ length: 5 }, (_, i) => `host/boot/pid:[4026531836]/${1_000 + i}/1`)
  const owned = (live: readonly string[]) => live.map((worker) => ownShards(worker, live, 'orders', 1_000))

  it("gives each shard to one worker, from every worker's view and in any order of the list", () => {
    const all = Array.from({ length: 1_000 }, (_, shard) => shard)

    expect(
      owned(workers)
        .flat()
        .sort((a, b) => a - b),
    ).toEqual(all)
    expect(owned(workers.toReversed())).toEqual(owned(workers).toReversed())
    expect(ownShards('me', ['me'], 'orders', 5)).toEqual([0, 1, 2, 3, 4])
  })

  it('gives workers about equal numbers, even if their ids differ in one digit', () => {
    for (const { length } of owned(workers)) {
      expect(length).toBeGreaterThan(150)
      expect(length).toBeLessThan(250)
    }
  })

  it('moves only the shards of a worker that leaves', () => {
    const [gone, ...left] = workers
    const before = owned(workers).slice(1)
    const after = owned(left)

    for (const [i, shards] of before.entries()) expect(after[i]).toEqual(expect.arrayContaining(shards))
    expect(ownShards(gone!, left, 'orders', 10)).toEqual([])
  })
})
