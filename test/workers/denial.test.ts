import type { StoredQueue } from 'millrace'
import type { Wait } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { denialsIn } from '#src/workers/claims/queue-picker.js'
import { storedQueue } from '../stored-queue.js'

const stored = (limits: Partial<StoredQueue>) => storedQueue('q', limits)
const throttled = (by: 'queue' | 'group') =>
  stored({ throttle: { scope: 'q', by, rules: [{ limit: 1, windowMs: 1, moderate: false }] } })
const denials = (waits: readonly Wait[], queue: StoredQueue, shards = 1) =>
  denialsIn({ waits: [...waits] }, new LimitedQueues([queue]), () => shards)
const wait = (reason: Wait['reason'], more: Partial<Wait> = {}): Wait => ({ queue: 'q', reason, ...more })

describe('a queue is denied', () => {
  it('if it is throttled, until it opens, or full; and not if it is empty, paused or has suspects', () => {
    expect(denials([wait('throttled', { forMs: 5 })], throttled('group'))).toEqual([{ queue: 'q', forMs: 5 }])
    expect(denials([wait('full', { forMs: 5 })], stored({ maxRunning: 1 }))).toEqual([{ queue: 'q' }])
    for (const reason of ['empty', 'scheduled', 'paused', 'suspect'] as const)
      expect(denials([wait(reason, { forMs: 5 })], throttled('queue'))).toEqual([])
  })

  it('by a limit for the whole queue as soon as one shard is', () => {
    const waits = [wait('throttled', { shard: 1, forMs: 9 }), wait('throttled', { shard: 0, forMs: 5 })]

    expect(denials(waits, throttled('queue'), 4)).toEqual([{ queue: 'q', forMs: 5 }])
    expect(denials([wait('full', { shard: 1 })], stored({ maxRunning: 1 }), 4)).toEqual([{ queue: 'q' }])
  })

  it('by limits of groups or of its shards only when every shard has answered', () => {
    const waits = [wait('throttled', { shard: 1, forMs: 9 }), wait('suspect', { shard: 1 })]
    expect(denials(waits, throttled('group'), 2)).toEqual([])
    expect(denials([...waits, wait('empty', { shard: 0 })], throttled('group'), 2)).toEqual([{ queue: 'q', forMs: 9 }])

    const exclusive = stored({ maxRunning: 9, exclusive: 'shard' })
    expect(denials([wait('full', { shard: 1 })], exclusive, 2)).toEqual([])
  })
})
