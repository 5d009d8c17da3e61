import { describe, expect, it } from 'vitest'
import { LoopTurn, SlotBatch, Slots } from '#src/workers/slots.js'

it('slots in use have different numbers, from 0 on, however they are taken and returned', () => {
  const slots = new Slots(4)
  const held = new Set<number>()
  const turns = [1, 1, 1, 1, -2, 1, -0, 1, -3, -1, 1, 1]
  for (const turn of turns) {
    if (turn === 1) {
      const slot = slots.take()
      expect(held).not.toContain(slot)
      held.add(slot)
    } else {
      slots.give(-turn)
      held.delete(-turn)
    }
  }

  expect([...held].sort()).toEqual([0, 1, 2, 3])
  expect(slots.free).toBe(0)
})

it('a requested slot is given if it is free, otherwise another', () => {
  const slots = new Slots(4)

  expect([slots.take(2), slots.take(2), slots.take(9)].map((slot, i) => (i === 0 ? slot : slot !== 2))).toEqual([
    ...[2, true, true],
  ])
  const [last] = [slots.take()]
  slots.give(2)
  expect([last === 2, slots.take(2)]).toEqual([false, 2])
})

function limited(limits: number[], left: number[]) {
  const deferred: number[] = []
  const batch = new SlotBatch(limits, 0, {
    timeLimitMs: (limit) => limit,
    leftMs: () => left[0]!,
    defer: (limit) => deferred.push(limit),
  })
  return { batch, deferred }
}

describe('the batch of a slot', () => {
  it('returns its jobs in order and then none', () => {
    const batch = new SlotBatch(['a', 'b'], 0)

    expect([batch.next(), batch.next(), batch.next()]).toEqual(['a', 'b', undefined])
  })

  it('defers jobs that cannot end within the lease, and goes on with the others', () => {
    const left = [60]
    const { batch, deferred } = limited([50, 60, 61, 59, 10], left)

    expect([batch.next(), batch.next()]).toEqual([50, 59])
    expect(deferred).toEqual([60, 61])
    left[0] = 10
    expect(batch.next()).toBeUndefined()
    expect(deferred).toEqual([60, 61, 10])
  })

  it('returns its rest only once', () => {
    const batch = new SlotBatch(['a', 'b', 'c'], 0)
    batch.next()

    expect([batch.rest(), batch.rest(), batch.next()]).toEqual([['b', 'c'], [], undefined])
  })
})

/** Jobs that each compute for `ms` when they begin, as many as wait; one entry for each turn: how many began in it. */
async function begunPerTurn(jobs: number, ms: number): Promise<number[]> {
  const perTurn: number[] = []
  let [now, left] = [0, jobs]
  await new Promise<void>((done) => {
    const begin = () => {
      let begun = 0
      for (; left > 0 && turn.next() !== undefined; left -= 1) {
        begun += 1
        now += ms
      }
      perTurn.push(begun)
      if (left === 0) done()
    }
    const turn = new LoopTurn(() => now, begin)
    begin()
  })
  return perTurn
}

it('jobs that compute for long begin one after the other, so that the event loop has a turn between them', async () => {
  expect(await begunPerTurn(4, 60)).toEqual([1, 1, 1, 1])
})

it('jobs begin for a few ms, then one at a time, and more again after a quick one', async () => {
  expect(await begunPerTurn(9, 4)).toEqual([3, 1, 3, 1, 1])
})

it('jobs that compute for no time begin all at once', async () => {
  expect(await begunPerTurn(5_000, 0)).toEqual([5_000])
})
