/**
 * Nothing is held: after a file of tests its process holds no claim. One that a handler held for ever would keep the
 * jobs that must run alone from every later file in this process.
 */

import { afterAll, beforeAll, expect, vi } from 'vitest'
import { processSoloGate } from '#src/runtime/solo-gate.js'

let before = 0
beforeAll(() => {
  before = processSoloGate.held
})
afterAll(async () => {
  await vi.waitFor(
    () => expect(processSoloGate.held, 'the claims that handlers of this file still hold').toBeLessThanOrEqual(before),
    { timeout: 5_000 },
  )
})
