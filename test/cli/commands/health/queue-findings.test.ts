import type { StoredQueue } from 'millrace'
import { describe, expect, it } from 'vitest'
import { shardFindings, throttleFindings } from '#src/cli/commands/queues/queue-findings.js'
import type { Queue } from '#src/core/queue/queue.js'
import type { Throttle, ThrottleRule } from '#src/core/queue/throttle.js'
import { storedQueue } from '../../../stored-queue.js'

const rule = (limit: number, windowMs: number, more: Partial<ThrottleRule> = {}): ThrottleRule => ({
  limit,
  windowMs,
  moderate: false,
  ...more,
})
const throttle = (rules: ThrottleRule[], more: Partial<Throttle> = {}): Throttle => ({
  scope: 'mail',
  by: 'queue',
  rules,
  ...more,
})
const stored = (name: string, has?: Throttle) => storedQueue(name, has && { throttle: has })
const ten = throttle([rule(10, 60_000)])
const found = (declared: Record<string, Throttle | undefined>, ...queues: StoredQueue[]) =>
  throttleFindings(new Map(Object.entries(declared).map(([name, has]) => [name, { throttle: has }])), queues)

describe('throttle findings', () => {
  it('name both throttles and the remedy', () => {
    expect(found({ mail: throttle([rule(20, 60_000, { moderate: true })]) }, stored('mail', ten))).toEqual([
      {
        level: 'error',
        what: 'throttle',
        text: "the throttle of queue 'mail' is stored as 10 in 1m, and configured as 20 in 1m, moderate: every call of a mill that is so configured fails. Write the stored one into your configuration, or run `millrace queues throttle mail --set 20/1m --moderate`.",
      },
    ])
  })

  it('suggest neither to set what is fixed nor what flags cannot express', () => {
    const [scope] = found({ mail: throttle([rule(10, 60_000)], { scope: 'api' }) }, stored('mail', ten))
    const [by] = found({ mail: throttle([rule(10, 60_000)], { by: 'group' }) }, stored('mail', ten))
    const [mixed] = found(
      { mail: throttle([rule(1, 1_000), rule(9, 60_000, { moderate: true })]) },
      stored('mail', ten),
    )
    for (const { text } of [scope!, by!])
      expect(text).toMatch(
        /Scope and `by` are fixed at first use: write the stored one .*, or give the queue another name\.$/,
      )
    expect(mixed!.text).toMatch(/, or set the other by the `throttle` of the queue\.$/)
  })

  it('report queues that share a throttle as one, and a queue that joins a scope with other rules', () => {
    const [api, other] = [throttle([rule(3, 1_000)], { scope: 'api' }), throttle([rule(4, 1_000)], { scope: 'api' })]
    const shared = found({ mail: other, sms: other }, stored('mail', api), stored('sms', api))
    expect(shared.map(({ text }) => text.slice(0, 45))).toEqual(["the throttle of queues 'mail', 'sms' is store"])
    expect(found({ push: other }, stored('mail', api))).toHaveLength(1)
  })

  it('are empty if both agree, if one of them is missing, or if nobody declared the queue', () => {
    expect(found({ mail: ten }, stored('mail', ten))).toEqual([])
    expect(found({ mail: undefined }, stored('mail', ten))).toEqual([])
    expect(found({ mail: ten }, stored('mail'))).toEqual([])
    expect(found({}, stored('mail', ten))).toEqual([])
  })
})

const sharded = (kind: 'plain' | 'ordered', shards: number) => storedQueue('q', { kind, shards })
const resharded = (kind: 'plain' | 'ordered', shards: number, asked: number) =>
  shardFindings(new Map([['q', { shards: asked } as Queue]]), [sharded(kind, shards)])

describe('shard findings', () => {
  it('name both numbers, and advise nobody to undo an intended reshard', () => {
    expect(resharded('ordered', 5, 1)).toEqual([
      {
        level: 'warning',
        what: 'shards',
        text: "queue 'q' has 5 shards, but 1 is configured: the stored number counts. If it was resharded on purpose, set `shards: 5` in your configuration; if the configured number is the one you want, run `millrace queues reshard q 1`.",
      },
    ])
  })

  it('name an unfinished reshard and how to continue it, but not the number that it replaces', () => {
    const queue = { ...sharded('ordered', 5), resharding: 5 }
    expect(shardFindings(new Map([['q', { shards: 4 } as Queue]]), [queue])).toEqual([
      {
        level: 'warning',
        what: 'shards',
        text: "the reshard of queue 'q' to 5 shards is unfinished: none of its jobs starts until it ends. If nobody runs it now, `millrace queues reshard q 5` goes on with it.",
      },
    ])
  })

  it('advise nobody to reshard a plain queue', () => {
    expect(resharded('plain', 3, 4)[0]!.text).toBe(
      "queue 'q' has 3 shards, but 4 are configured: the stored number counts. Plain queues are not resharded: set `shards: 3` in your configuration.",
    )
  })

  it('are empty if the numbers agree, if the store does not shard plain queues, or if nobody declared the queue', () => {
    expect(resharded('ordered', 5, 5)).toEqual([])
    expect(resharded('plain', 1, 4)).toEqual([])
    expect(shardFindings(new Map(), [sharded('ordered', 4)])).toEqual([])
  })
})
