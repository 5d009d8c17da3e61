import type { Step } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { patientTotal, restMs, StepBudget, type StepProgress, total } from '#src/client/admin/step-loop.js'

/** Steps that change so many jobs each; the last says that there is nothing more. */
function steps(...changed: number[]): () => Promise<Step> {
  const left = [...changed]
  return async () => ({ changed: left.shift()!, more: left.length > 0 })
}

describe('a step loop', () => {
  it('goes on until nothing is left, and adds up the counts', async () => {
    expect(await total(steps(1_000, 0, 500))).toBe(1_500)
  })

  it('leaves a store that others wait for to them for three times as long as its step took', () => {
    expect(restMs({ changed: 10, more: true, isAwaited: true }, 2)).toBe(6)
    expect(restMs({ changed: 10, more: true }, 2)).toBe(0)
  })

  it('waits longer after each step that changed nothing, and starts over after one that did', async () => {
    const [step, at, progress] = [steps(0, 0, 0, 7, 0, 1), [] as number[], [] as StepProgress[]]
    const taken = () => {
      at.push(performance.now())
      return step()
    }

    expect(await patientTotal(taken, { onProgress: (one) => progress.push(one) })).toBe(8)
    const waits = at.slice(1).map((now, i) => now - at[i]!)
    // A timer may fire within the millisecond before its time.
    for (const [i, leastMs] of [49, 99, 199, 0, 49].entries()) expect(waits[i]).toBeGreaterThanOrEqual(leastMs)
    expect(progress.map(({ isWaiting }) => isWaiting)).toEqual([true, true, true, false, true, false])
    expect(progress.map(({ changed }) => changed)).toEqual([0, 0, 0, 7, 7, 8])
  })

  it('ends at once with the reason if it is aborted while it waits, and takes no further step', async () => {
    const over = new AbortController()
    const reason = new Error('enough')
    let taken = 0
    const endless = async () => {
      taken += 1
      if (taken > 100) throw new Error('it hammers')
      if (taken === 3) setImmediate(() => over.abort(reason))
      return { changed: 0, more: true }
    }

    await expect(patientTotal(endless, { signal: over.signal })).rejects.toBe(reason)
    expect(taken).toBe(3)
    await expect(patientTotal(endless, { signal: over.signal })).rejects.toBe(reason)
    expect(taken).toBe(3)
  })
})

describe('a step budget', () => {
  it('takes at least one step, stops when its time is over, and says that there is more', async () => {
    let now = 0
    const late = new StepBudget(10, () => now)
    const step = steps(1_000, 1_000, 500)
    const slow = async () => {
      now += 6
      return step()
    }

    expect([await late.loop(slow), late.more]).toEqual([2_000, true])
    expect([await late.loop(slow), late.more]).toEqual([500, false])
    expect(await new StepBudget(0, () => now).loop(steps(3, 1))).toBe(3)
  })
})
