/** The simulation of workers on the memory store, in short: `npm run prove simulation` is the whole of it. */

import type { SettleAnswer, SettleItem } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { everyInterleaving, walks } from '../../proofs/simulation/interleavings.js'
import { scenarios } from '../../proofs/simulation/scenarios.js'

/** Believes every settle, also that of a claim which was taken over. */
class GullibleStore extends MemoryStore {
  override async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    await super.settle(items)
    return items.map(() => 'ok' as const)
  }
}

describe.each(scenarios)('$name', (scenario) => {
  it('keeps each promise in every order of three steps, and in long walks', { timeout: 120_000 }, async () => {
    const orders = await everyInterleaving(scenario, { MemoryStore, ManualClock }, 3)
    const walked = await walks(scenario, { MemoryStore, ManualClock }, { seed: 1, count: 50, length: 40 })

    expect([orders.broken, walked.broken]).toEqual([undefined, undefined])
    expect(orders.interleavings).toBeGreaterThan(300)
    expect(walked.steps).toBeGreaterThan(2_000)
  })
})

it('the simulation detects a store that accepts a late settle', async () => {
  const { broken } = await everyInterleaving(scenarios[0]!, { MemoryStore: GullibleStore, ManualClock }, 3)

  expect(broken?.what).toBe("the settle of an old claim of a was answered 'ok'")
  expect(broken?.trace).toHaveLength(3)
})
