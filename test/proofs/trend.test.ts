import { expect, it } from 'vitest'
import { trend } from '../../proofs/trend.js'
import { seededRandom } from '../seeded-random.js'

const minutes = Array.from({ length: 60 }, (_, i) => i)

it('a series that grows by a fixed amount has exactly that slope', () => {
  const { perHour, error } = trend(
    minutes.map((minute) => 5 + minute),
    1 / 60,
  )

  expect(perHour).toBeCloseTo(60, 6)
  expect(error).toBeCloseTo(0, 6)
})

it('the slope of noise is within four times its error, in each of 200 series', () => {
  const random = seededRandom(7)
  const slopes = Array.from({ length: 200 }, () => trend(minutes.map(random), 1 / 60))

  expect(slopes.filter(({ perHour, error }) => Math.abs(perHour) > 4 * error)).toEqual([])
})
