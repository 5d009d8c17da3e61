import { expect, it } from 'vitest'
import { herd } from '../../../../proofs/workers/herd.js'

it('one job wakes only a few of many waiting connections', async () => {
  const { claims, claimsInAll, wakeMs } = await herd({ processes: 2, handlesEach: 10, rounds: 5 })
  // One is rung; another may look by chance while the job passes by.
  expect(Math.max(...claims)).toBeLessThanOrEqual(4)
  expect(Math.max(...claimsInAll)).toBeLessThanOrEqual(6)
  expect(Math.min(...claims)).toBeGreaterThan(0)
  expect(Math.min(...wakeMs)).toBeLessThan(250)
})
