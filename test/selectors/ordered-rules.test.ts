/** The rules without tickets: random, highest first, sequential, lag. */
import { describe, expect, it } from 'vitest'
import { highestFirst, highestFirstLottery, lag, randomQueue, selectorNamed } from '#src/selectors/named-selectors.js'
import { chiSquare, pValue } from '../chi-square.js'
import { seededRandom } from '../seeded-random.js'
import { documented, granted, permutations, tally } from './odds.js'

describe('random', () => {
  it('gives each queue the same share, whatever its weight', () => {
    const random = seededRandom(1)
    const counts = tally(['high', 'default', 'low'], 30_000, () => randomQueue(documented, random)[0])

    expect(pValue(chiSquare(counts, [10_000, 10_000, 10_000]), 2)).toBeGreaterThan(0.001)
  })

  it('names one queue, empty or not', () => {
    expect(randomQueue(documented, () => 0.999)).toEqual(['low'])
  })
})

describe.each([
  ['highest-first', highestFirst],
  ['highest-first-lottery', highestFirstLottery],
])('%s', (_, selector) => {
  it('never picks low while high has work (K4)', () => {
    const random = seededRandom(2)
    const picks = tally(['high', 'default', 'low'], 10_000, () => granted(selector, documented, () => true, random))

    expect(picks).toEqual([10_000, 0, 0])
  })

  it('goes down to the next weight that has work', () => {
    for (const queues of permutations(documented)) {
      expect(selector(queues, seededRandom(3))).toEqual(['high', 'default', 'low'])
    }
  })
})

describe('equal weights', () => {
  const equals = ['a', 'b', 'c', 'd'].map((name) => ({ name, weight: name === 'd' ? 90 : 10 }))

  it('keep the given order with highest-first', () => {
    expect(highestFirst(equals, seededRandom(4))).toEqual(['d', 'a', 'b', 'c'])
  })

  it('are drawn with highest-first-lottery, each order equally likely', () => {
    const random = seededRandom(5)
    const orders = permutations(['a', 'b', 'c']).map((order) => ['d', ...order].join())
    const counts = tally(orders, 12_000, () => highestFirstLottery(equals, random).join())

    expect(pValue(chiSquare(counts, new Array(6).fill(2_000)), 5)).toBeGreaterThan(0.001)
  })
})

describe('sequential', () => {
  const random = seededRandom(6)

  it('starts one queue later with each call, and wraps around', () => {
    const sequential = selectorNamed('sequential')

    expect([1, 2, 3, 4].map(() => sequential(documented, random))).toEqual([
      ['high', 'default', 'low'],
      ['default', 'low', 'high'],
      ['low', 'high', 'default'],
      ['high', 'default', 'low'],
    ])
  })

  it('continues while queues are added and removed', () => {
    const sequential = selectorNamed('sequential')
    sequential(documented, random)

    expect(sequential(documented.slice(0, 1), random)).toEqual(['high'])
    expect(sequential([], random)).toEqual([])
    expect(sequential(documented, random)).toHaveLength(3)
  })
})

describe('lag', () => {
  it('puts the oldest head first and unknown heads last, in the given order', () => {
    const queues = [
      { name: 'unknown', weight: 100 },
      { name: 'young', weight: 1, headAgeMs: 0 },
      { name: 'empty', weight: 100 },
      { name: 'oldest', weight: 1, headAgeMs: 9_000 },
      { name: 'old', weight: 50, headAgeMs: 8_999 },
    ]

    expect(lag(queues, seededRandom(7))).toEqual(['oldest', 'old', 'young', 'unknown', 'empty'])
  })

  it('keeps the given order among heads of equal age', () => {
    const queues = ['a', 'b', 'c'].map((name) => ({ name, weight: 1, headAgeMs: 5 }))

    expect(lag(queues, seededRandom(8))).toEqual(['a', 'b', 'c'])
  })
})
