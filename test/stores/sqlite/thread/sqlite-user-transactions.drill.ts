import { expect, it } from 'vitest'
import { orders, unrungStarts } from '../../../../proofs/stores/enqueue-in.js'

// Sixty rounds, in processes that are killed one after the other.
it('jobs exist for exactly the committed rows, whatever was rolled back or killed', {
  timeout: 120_000,
}, async () => {
  const outcome = await orders('@photostructure/sqlite', 60, 1)
  expect(outcome).toMatchObject({ withoutJob: [], withoutOrder: [], ranTwice: [], findings: [] })
  expect(outcome.ran).toBe(outcome.orders)
  expect(Math.min(...Object.values(outcome.rounds))).toBeGreaterThan(0)
})

it('a job whose process was killed right after the commit is started', async () => {
  expect(await unrungStarts(1)).toHaveLength(1)
})
