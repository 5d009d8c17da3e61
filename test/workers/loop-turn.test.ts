/** A turn of the event loop, as far as a worker begins jobs in it. */

import { expect, it } from 'vitest'
import { LoopTurn } from '#src/workers/slots.js'

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
