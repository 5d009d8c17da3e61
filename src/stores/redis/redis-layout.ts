/**
 * The layout of a queue: in which shards it lies, as the registry of queues says it. Pure.
 *
 * A plain queue is written down as the number of its shards: `2`. An ordered one as `4 ordered 0`: the number, and behind
 * the word its generation, which grows with every change of the number; while it is on its way to 8 shards of the next
 * generation, `4 ordered 0 to 8`.
 */

import { shardOf } from '../../core/payloads.js'
import { keysOf, orderedTag, type QueueKind, shardTag } from './redis-keys.js'

export interface RedisLayout {
  readonly kind: QueueKind
  readonly shards: number
  /** 0 for a plain queue. */
  readonly generation: number
  /** The number of shards that it is on its way to. */
  readonly towards?: number
}

export interface RedisShard {
  readonly queue: string
  readonly kind: QueueKind
  /** Its number among those of its generation. */
  readonly shard: number
  readonly tag: string
  /** As every script is given them. */
  readonly keys: readonly string[]
}

/** A queue as one handle knows it. */
export interface RedisQueue {
  readonly name: string
  readonly layout: RedisLayout
  readonly shards: readonly RedisShard[]
  /** Those it is on its way to; none where it stays. */
  readonly next: readonly RedisShard[]
  /** Tags of the shards that are empty for good, on the way to the next. */
  readonly closed: Set<string>
}

const form = /^([1-9]\d{0,3})(?: ordered (\d{1,9})(?: to ([1-9]\d{0,3}))?)?$/

/** Undefined where it is none. */
export function layoutIn(text: string): RedisLayout | undefined {
  const [, shards, generation, towards] = form.exec(text) ?? []
  if (shards === undefined) return undefined
  return {
    kind: generation === undefined ? 'plain' : 'ordered',
    shards: Number(shards),
    generation: Number(generation ?? 0),
    ...(towards === undefined ? {} : { towards: Number(towards) }),
  }
}

export function layoutText({ kind, shards, generation, towards }: RedisLayout): string {
  if (kind === 'plain') return String(shards)
  return `${shards} ordered ${generation}${towards === undefined ? '' : ` to ${towards}`}`
}

export function queueIn(namespace: string, name: string, layout: RedisLayout): RedisQueue {
  const { kind, shards, generation, towards = 0 } = layout
  const shardsOf = (count: number, at: number) =>
    Array.from({ length: count }, (_, shard): RedisShard => {
      const tag = kind === 'plain' ? shardTag(namespace, name, shard, count) : orderedTag(namespace, name, at, shard)
      return { queue: name, kind, shard, tag, keys: keysOf(tag, kind) }
    })
  return {
    name,
    layout,
    shards: shardsOf(shards, generation),
    next: shardsOf(towards, generation + 1),
    closed: new Set(),
  }
}

/** The shards that may hold something, those it is on its way to last. */
export function liveShards({ shards, next, closed }: RedisQueue): RedisShard[] {
  return [...shards.filter(({ tag }) => !closed.has(tag)), ...next]
}

/** Those that have nothing left, unless it is in transit. */
export function closedShards({ shards, closed }: RedisQueue): RedisShard[] {
  return shards.filter(({ tag }) => closed.has(tag))
}

/** The shard in which an id lies, or comes to lie. */
export function shardHolding(queue: RedisQueue, id: string): RedisShard {
  return shardsHolding(queue, id)[0]!
}

/** The shards in which there may be something of an id: two while the queue is on its way to others. */
export function shardsHolding({ shards, next, closed }: RedisQueue, id: string): RedisShard[] {
  const current = shards[shardOf(id, shards.length)]!
  if (next.length === 0) return [current]
  const coming = next[shardOf(id, next.length)]!
  return closed.has(current.tag) ? [coming] : [current, coming]
}
