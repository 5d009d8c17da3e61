import { describe, expect, it } from 'vitest'
import { SoloGate } from '#src/runtime/solo-gate.js'

/** Whether it has resolved by now. */
async function isResolved(promise: Promise<void>): Promise<boolean> {
  let resolved = false
  void promise.then(() => {
    resolved = true
  })
  for (let i = 0; i < 5; i += 1) await Promise.resolve()
  return resolved
}

describe('solitude', () => {
  it('admits one who seeks it when nobody holds anything, and keeps all others out meanwhile', async () => {
    const solitude = new SoloGate()
    solitude.take(2)
    const hermit = solitude.seek()
    expect(solitude.isOpen).toBe(false)
    solitude.give()
    expect(await isResolved(hermit.admitted)).toBe(false)
    solitude.give()
    expect(await isResolved(hermit.admitted)).toBe(true)
    expect(await isResolved(solitude.opened())).toBe(false)
    hermit.leave()
    expect(solitude.isOpen).toBe(true)
    expect(await isResolved(solitude.opened())).toBe(true)
  })

  it('admits one after the other', async () => {
    const solitude = new SoloGate()
    const [first, second] = [solitude.seek(), solitude.seek()]
    expect(await isResolved(first.admitted)).toBe(true)
    expect(await isResolved(second.admitted)).toBe(false)
    solitude.take(1)
    first.leave()
    first.leave()
    expect(await isResolved(second.admitted)).toBe(false)
    solitude.give()
    expect(await isResolved(second.admitted)).toBe(true)
  })

  it('can be given up before it was found', async () => {
    const solitude = new SoloGate()
    solitude.take(1)
    solitude.seek().leave()

    expect(solitude.isOpen).toBe(true)
  })
})
