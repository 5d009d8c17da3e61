import { describe, expect, it } from 'vitest'
import { Batch } from '#src/workers/batch.js'

function limited(limits: number[], left: number[]) {
  const deferred: number[] = []
  const batch = new Batch(limits, 0, {
    timeLimitMs: (limit) => limit,
    leftMs: () => left[0]!,
    defer: (limit) => deferred.push(limit),
  })
  return { batch, deferred }
}

describe('a batch', () => {
  it('gives its jobs in order and then none', () => {
    const batch = new Batch(['a', 'b'], 0)

    expect([batch.next(), batch.next(), batch.next()]).toEqual(['a', 'b', undefined])
  })

  it('defers what cannot end within the lease and goes on with what can', () => {
    const left = [60]
    const { batch, deferred } = limited([50, 60, 61, 59, 10], left)

    expect([batch.next(), batch.next()]).toEqual([50, 59])
    expect(deferred).toEqual([60, 61])
    left[0] = 10
    expect(batch.next()).toBeUndefined()
    expect(deferred).toEqual([60, 61, 10])
  })

  it('gives up its rest once', () => {
    const batch = new Batch(['a', 'b', 'c'], 0)
    batch.next()

    expect([batch.rest(), batch.rest(), batch.next()]).toEqual([['b', 'c'], [], undefined])
  })
})
