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

describe('the gate for running alone', () => {
  it('admits one suspect when nobody holds anything, and keeps all others out meanwhile', async () => {
    const soloGate = new SoloGate()
    soloGate.take(2)
    const soloTurn = soloGate.seek()
    expect(soloGate.isOpen).toBe(false)
    soloGate.give()
    expect(await isResolved(soloTurn.admitted)).toBe(false)
    soloGate.give()
    expect(await isResolved(soloTurn.admitted)).toBe(true)
    expect(await isResolved(soloGate.opened())).toBe(false)
    soloTurn.leave()
    expect(soloGate.isOpen).toBe(true)
    expect(await isResolved(soloGate.opened())).toBe(true)
  })

  it('admits one suspect after the other', async () => {
    const soloGate = new SoloGate()
    const [first, second] = [soloGate.seek(), soloGate.seek()]
    expect(await isResolved(first.admitted)).toBe(true)
    expect(await isResolved(second.admitted)).toBe(false)
    soloGate.take(1)
    first.leave()
    first.leave()
    expect(await isResolved(second.admitted)).toBe(false)
    soloGate.give()
    expect(await isResolved(second.admitted)).toBe(true)
  })

  it('ends long-running holders, and waits for them', async () => {
    const soloGate = new SoloGate()
    let isEnded = false
    const leave = soloGate.takeUntilSought(() => {
      isEnded = true
    })
    expect([soloGate.held, isEnded]).toEqual([1, false])
    const soloTurn = soloGate.seek()
    expect(isEnded).toBe(true)
    expect(await isResolved(soloTurn.admitted)).toBe(false)
    leave()
    expect(await isResolved(soloTurn.admitted)).toBe(true)
  })

  it('can be given up before it is admitted', async () => {
    const soloGate = new SoloGate()
    soloGate.take(1)
    soloGate.seek().leave()

    expect(soloGate.isOpen).toBe(true)
  })
})
