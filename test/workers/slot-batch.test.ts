import { describe, expect, it } from 'vitest'
import { SlotBatch } from '#src/workers/slots.js'

function limited(limits: number[], left: number[]) {
  const deferred: number[] = []
  const stint = new SlotBatch(limits, 0, {
    timeLimitMs: (limit) => limit,
    leftMs: () => left[0]!,
    defer: (limit) => deferred.push(limit),
  })
  return { stint, deferred }
}

describe('the batch of a slot', () => {
  it('returns its jobs in order and then none', () => {
    const stint = new SlotBatch(['a', 'b'], 0)

    expect([stint.next(), stint.next(), stint.next()]).toEqual(['a', 'b', undefined])
  })

  it('defers jobs that cannot end within the lease, and goes on with the others', () => {
    const left = [60]
    const { stint, deferred } = limited([50, 60, 61, 59, 10], left)

    expect([stint.next(), stint.next()]).toEqual([50, 59])
    expect(deferred).toEqual([60, 61])
    left[0] = 10
    expect(stint.next()).toBeUndefined()
    expect(deferred).toEqual([60, 61, 10])
  })

  it('returns its rest only once', () => {
    const stint = new SlotBatch(['a', 'b', 'c'], 0)
    stint.next()

    expect([stint.rest(), stint.rest(), stint.next()]).toEqual([['b', 'c'], [], undefined])
  })
})
