import { describe, expect, it } from 'vitest'
import { shardFindings } from '#src/cli/output/shard-findings.js'
import type { Queue } from '#src/core/queue/queue.js'
import { storedQueue } from '../stored-queue.js'

const stored = (kind: 'plain' | 'ordered', shards: number) => storedQueue('q', { kind, shards })
const found = (kind: 'plain' | 'ordered', shards: number, asked: number) =>
  shardFindings(new Map([['q', { shards: asked } as Queue]]), [stored(kind, shards)])

describe('shard findings', () => {
  it('name both numbers, and advise nobody to undo an intended reshard', () => {
    expect(found('ordered', 5, 1)).toEqual([
      {
        level: 'warning',
        what: 'shards',
        text: "queue 'q' has 5 shards, but 1 is configured: the stored number counts. If it was resharded on purpose, set `shards: 5` in your configuration; if the configured number is the one you want, run `millrace queues reshard q 1`.",
      },
    ])
  })

  it('name an unfinished reshard and how to continue it, but not the number that it replaces', () => {
    const queue = { ...stored('ordered', 5), resharding: 5 }
    expect(shardFindings(new Map([['q', { shards: 4 } as Queue]]), [queue])).toEqual([
      {
        level: 'warning',
        what: 'shards',
        text: "the reshard of queue 'q' to 5 shards is unfinished: none of its jobs starts until it ends. If nobody runs it now, `millrace queues reshard q 5` goes on with it.",
      },
    ])
  })

  it('advise nobody to reshard a plain queue', () => {
    expect(found('plain', 3, 4)[0]!.text).toBe(
      "queue 'q' has 3 shards, but 4 are configured: the stored number counts. Plain queues are not resharded: set `shards: 3` in your configuration.",
    )
  })

  it('are empty if the numbers agree, if the store does not shard plain queues, or if nobody declared the queue', () => {
    expect(found('ordered', 5, 5)).toEqual([])
    expect(found('plain', 1, 4)).toEqual([])
    expect(shardFindings(new Map(), [stored('ordered', 4)])).toEqual([])
  })
})
