/** The lotteries: their odds, and that the reduced one is Kale's. */
import { describe, expect, it } from 'vitest'
import type { Random } from '#src/core/platform/clock.js'
import { lottery, lotteryLottery, reducedLottery } from '#src/selectors/named-selectors.js'
import type { Candidate } from '#src/selectors/selector.js'
import { chiSquare, chiSquareOfTwo, pValue } from '../chi-square.js'
import { seededRandom } from '../seeded-random.js'
import {
  documented,
  granted,
  kaleReducedLottery,
  oddsOfOrder,
  permutations,
  tally,
  totalWeight,
  without,
} from './odds.js'

const names = ['high', 'default', 'low']
const always = () => true

/** Numbers in order, one a call. */
function scripted(numbers: readonly number[]): Random {
  let at = 0
  return () => numbers[at++]!
}

/** One draw for the middle of each ticket: an even sweep of chance, so that counts are odds exactly. */
function sweep(queues: readonly Candidate[]): number[] {
  const tickets = totalWeight(queues)
  const middles = Array.from({ length: tickets }, (_, i) => (i + 0.5) / tickets)
  const random = scripted(middles)
  return tally(names, tickets, () => lottery(queues, random)[0])
}

describe('lottery', () => {
  it('gives each queue exactly its weight in tickets', () => {
    expect(sweep(documented)).toEqual([100, 40, 5])
  })

  it.each([
    ['high', [0, 88.89, 11.11]],
    ['default', [95.24, 0, 4.76]],
    ['low', [71.43, 28.57, 0]],
  ])('without %s shares its tickets among the others by weight', (gone, percent) => {
    const queues = without(gone)

    expect(sweep(queues).map((count) => Number(((count / totalWeight(queues)) * 100).toFixed(2)))).toEqual(percent)
  })

  it('gives 14,500 selections at 100/40/5 as 10,000/4,000/500 within three deviations (K1)', () => {
    const random = seededRandom(1)
    const [high, middle, low] = tally(names, 14_500, () => lottery(documented, random)[0])

    expect(Math.abs(high! - 10_000)).toBeLessThan(167)
    expect(Math.abs(middle! - 4_000)).toBeLessThan(161)
    expect(Math.abs(low! - 500)).toBeLessThan(66)
  })

  it('assigns the border between two queues to the later one, so that each has exactly its weight', () => {
    const queues = [1, 1].map((weight, i) => ({ name: names[i]!, weight }))

    expect([0, 0.5].map((number) => lottery(queues, () => number))).toEqual([['high'], ['default']])
  })

  it('works for fractional weights, up to the last ticket', () => {
    const queues = [0.1, 0.2, 0.3].map((weight) => ({ name: String(weight), weight }))

    expect(lottery(queues, () => 1 - 2 ** -53)).toEqual(['0.3'])
  })
})

describe('lottery-lottery', () => {
  it('draws ten times and once more, dropping repeated names', () => {
    const order = lotteryLottery(documented, scripted([0, 0, 0.99, 0, 0, 0, 0, 0, 0, 0, 0.8]))

    expect(order).toEqual(['high', 'low', 'default'])
  })

  it('may omit a queue that eleven draws did not hit', () => {
    expect(lotteryLottery(documented, () => 0.5)).toEqual(['high'])
  })

  it('misses the low queue as often as eleven draws with replacement do', () => {
    const random = seededRandom(3)
    const missed = tally(['false'], 20_000, () => String(lotteryLottery(documented, random).includes('low')))[0]!
    const expected = 20_000 * (140 / 145) ** 11

    expect(pValue(chiSquare([missed, 20_000 - missed], [expected, 20_000 - expected]), 1)).toBeGreaterThan(0.001)
  })
})

describe('reduced-lottery', () => {
  it('gives 14,500 selections at 100/40/5 as 10,000/4,000/500 within three deviations (K1)', () => {
    const random = seededRandom(2)
    const [high, middle, low] = tally(names, 14_500, () => granted(reducedLottery, documented, always, random))

    expect(Math.abs(high! - 10_000)).toBeLessThan(167)
    expect(Math.abs(middle! - 4_000)).toBeLessThan(161)
    expect(Math.abs(low! - 500)).toBeLessThan(66)
  })

  it.each(names)('with %s empty draws the others by their weights', (empty) => {
    const random = seededRandom(4)
    const rest = without(empty)
    const hasWork = (name: string) => name !== empty
    const counts = tally(
      rest.map((queue) => queue.name),
      20_000,
      () => granted(reducedLottery, documented, hasWork, random),
    )

    const expected = rest.map((queue) => (20_000 * queue.weight) / totalWeight(rest))
    expect(pValue(chiSquare(counts, expected), 1)).toBeGreaterThan(0.001)
  })

  it('gives every order as often as draws without replacement do', () => {
    const random = seededRandom(5)
    const orders = permutations(documented)
    const keys = orders.map((order) => order.map((queue) => queue.name).join())
    const counts = tally(keys, 100_000, () => reducedLottery(documented, random).join())

    const expected = orders.map((order) => oddsOfOrder(order) * 100_000)
    expect(expected.reduce((sum, count) => sum + count)).toBeCloseTo(100_000)
    expect(pValue(chiSquare(counts, expected), 5)).toBeGreaterThan(0.001)
  })

  it.each([11, 12, 13])("has the distribution of Kale's own loop, whichever queues have work (seed %i)", (seed) => {
    const queues = [7, 100, 1, 30, 30].map((weight, i) => ({ name: `q${i}`, weight }))
    const random = seededRandom(seed)
    for (let pattern = 1; pattern < 2 ** queues.length; pattern += 1) {
      const working = queues.filter((_, i) => (pattern >> i) & 1).map((queue) => queue.name)
      const hasWork = (name: string) => working.includes(name)
      const ours = tally(working, 2_000, () => granted(reducedLottery, queues, hasWork, random))
      const kales = tally(working, 2_000, () => kaleReducedLottery(queues, hasWork, random))

      expect(ours.reduce((sum, count) => sum + count)).toBe(2_000)
      // 93 comparisons are made with these seeds: the bound of each is that much smaller.
      if (working.length > 1) {
        expect(pValue(chiSquareOfTwo(ours, kales), working.length - 1)).toBeGreaterThan(0.001 / 93)
      }
    }
  })

  it('names every queue to wait on if all are empty (K3)', () => {
    expect(reducedLottery(documented, seededRandom(6)).toSorted()).toEqual(['default', 'high', 'low'])
  })
})

describe('the chi-square of these tests', () => {
  it.each([
    [3.841, 1, 0.05],
    [5.991, 2, 0.05],
    [10.828, 1, 0.001],
    [13.816, 2, 0.001],
    [20.515, 5, 0.001],
    [11.07, 5, 0.05],
    [18.467, 4, 0.001],
    [0, 3, 1],
  ])('gives the tabled p for %f with %i degrees of freedom', (statistic, degrees, p) => {
    expect(pValue(statistic, degrees)).toBeCloseTo(p, p < 0.01 ? 5 : 4)
  })

  it('separates a lottery with other weights from the documented one', () => {
    const random = seededRandom(9)
    const skewed = [100, 40, 10].map((weight, i) => ({ name: names[i]!, weight }))
    const counts = tally(names, 14_500, () => granted(reducedLottery, skewed, always, random))

    expect(pValue(chiSquare(counts, [10_000, 4_000, 500]), 2)).toBeLessThan(1e-6)
  })
})
