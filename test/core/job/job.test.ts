/** Jobs: which states are an end, and which numbers a priority. */
import { expect, it } from 'vitest'
import { isPriority, jobStates } from '#src/core/job/job.js'

it('three states are final', () => {
  expect(jobStates).toEqual(['scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled'])
})

it.each([[0], [-32_768], [32_767]])('%d is a valid priority', (value) => {
  expect(isPriority(value)).toBe(true)
})

it.each([[-32_769], [32_768], [0.5], [Number.NaN], [Infinity], ['5'], [5n], [null], [undefined]])(
  '%o is not a valid priority',
  (value) => {
    expect(isPriority(value)).toBe(false)
  },
)
