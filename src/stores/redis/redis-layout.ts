/**
 * The layout of a queue: its shards, as written in the registry of queues. Pure.
 *
 * A plain queue is written as the number of its shards: `2`. An ordered queue is written as `4 ordered 0`: the number,
 * and the generation, which grows with every change of the number. While it moves to 8 shards of the next generation,
 * it is `4 ordered 0 to 8`. These parts may follow: ` at sites` if it was made with limits, and shares a place with all
 * queues of these limits; ` in sites` if it has a throttle of that scope; ` bounded` if its shards share a bound on
 * running jobs.
 */

import { StoreCorruptError } from '../../core/errors.js'
import type { QueueKind, QueueSettings } from '../contract/queue-settings.js'
import { shardOf } from '../rules/payloads.js'
import { keysOf, orderedTag, placedTag, shardTag } from './redis-keys.js'

export interface RedisLayout {
  readonly kind: QueueKind
  readonly shards: number
  /** 0 for a plain queue. */
  readonly generation: number
  /** The number of shards that the queue moves to. */
  readonly towards?: number
  /** The place that it shares with other queues. Absent: it is by itself. */
  readonly place?: string
  /** The scope of its throttle. */
  readonly scope?: string
  /** Ordered queues only: claims on a shard count the running jobs of all its shards. */
  readonly isBounded?: true
}

export interface RedisShard {
  readonly queue: string
  readonly kind: QueueKind
  /** Its number within its generation. */
  readonly shard: number
  readonly tag: string
  /** The keys, as every script gets them. */
  readonly keys: readonly string[]
}

/** A queue as a handle knows it. */
export interface RedisQueue {
  readonly name: string
  readonly layout: RedisLayout
  readonly shards: readonly RedisShard[]
  /** The shards that the queue moves to; empty unless it moves. */
  readonly next: readonly RedisShard[]
  /** The tags of shards that stay empty, because their jobs have moved to the next ones. */
  readonly closed: Set<string>
}

const word = '[A-Za-z0-9][A-Za-z0-9._-]{0,79}'
const form = new RegExp(
  `^([1-9]\\d{0,3})(?: ordered (\\d{1,9})(?: to ([1-9]\\d{0,3}))?)?(?: at (${word}))?(?: in (${word}))?( bounded)?$`,
)

/** Undefined if the text is no layout. */
export function layoutIn(text: string): RedisLayout | undefined {
  const [, shards, generation, towards, place, scope, bounded] = form.exec(text) ?? []
  if (shards === undefined) return undefined
  return {
    kind: generation === undefined ? 'plain' : 'ordered',
    shards: Number(shards),
    generation: Number(generation ?? 0),
    ...(towards === undefined ? {} : { towards: Number(towards) }),
    ...(place === undefined ? {} : { place }),
    ...(scope === undefined ? {} : { scope }),
    ...(bounded === undefined ? {} : { isBounded: true }),
  }
}

/** The layout that the registry has. Throws `StoreCorruptError` if it cannot be read. */
export function layoutOf(name: string, stored: string): RedisLayout {
  const layout = layoutIn(stored)
  if (layout !== undefined) return layout
  throw new StoreCorruptError(
    `the registry says that queue '${name}' has '${stored}' shards, which cannot be. Run \`millrace fsck\`.`,
  )
}

export function layoutText({ kind, shards, generation, towards, place, scope, isBounded }: RedisLayout): string {
  const lies = kind === 'plain' ? '' : ` ordered ${generation}${towards === undefined ? '' : ` to ${towards}`}`
  const at = place === undefined ? '' : ` at ${place}`
  return `${shards}${lies}${at}${scope === undefined ? '' : ` in ${scope}`}${isBounded ? ' bounded' : ''}`
}

/** The layout in which a queue is created, or in which a stored one continues with these settings. */
export function layoutFor(settings: QueueSettings, stored?: RedisLayout): RedisLayout {
  const { name, kind, throttle, maxRunning } = settings
  const isBounded = maxRunning !== undefined && maxRunning !== 'none'
  const isLimited = throttle !== undefined || isBounded
  const scope = stored?.scope ?? throttle?.scope
  const made: RedisLayout = stored ?? {
    kind,
    shards: kind === 'plain' && isLimited ? 1 : (settings.shards ?? 1),
    generation: 0,
    ...(isLimited && !(kind === 'plain' && (scope ?? name) === name) ? { place: scope ?? name } : {}),
  }
  return {
    ...made,
    ...(scope === undefined ? {} : { scope }),
    ...(made.isBounded || (made.kind === 'ordered' && isBounded) ? { isBounded: true } : {}),
  }
}

export function queueIn(namespace: string, name: string, layout: RedisLayout): RedisQueue {
  const { kind, shards, generation, towards = 0, place } = layout
  const tagOf = (shard: number, count: number, at: number) => {
    if (place !== undefined) return placedTag(namespace, place, name, kind === 'plain' ? undefined : `${at}.${shard}`)
    return kind === 'plain' ? shardTag(namespace, name, shard, count) : orderedTag(namespace, name, at, shard)
  }
  const shardsOf = (count: number, at: number) =>
    Array.from({ length: count }, (_, shard): RedisShard => {
      const tag = tagOf(shard, count, at)
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

/** The shards that may hold something. Those that the queue moves to come last. */
export function liveShards({ shards, next, closed }: RedisQueue): RedisShard[] {
  return [...shards.filter(({ tag }) => !closed.has(tag)), ...next]
}

/** The shards that have nothing left, except perhaps in transit. */
export function closedShards({ shards, closed }: RedisQueue): RedisShard[] {
  return shards.filter(({ tag }) => closed.has(tag))
}

/** The keys to add to those of a shard if all shards of its queue share a bound. */
export function siblingKeys({ layout, shards }: RedisQueue): string[] {
  return layout.isBounded ? shards.flatMap(({ keys }) => keys) : []
}

/** The shard in which an id is, or would be put. */
export function shardHolding(queue: RedisQueue, id: string): RedisShard {
  return shardsHolding(queue, id)[0]!
}

/** The shards that may have something of an id: two while the queue moves to others. */
export function shardsHolding({ shards, next, closed }: RedisQueue, id: string): RedisShard[] {
  const current = shards[shardOf(id, shards.length)]!
  if (next.length === 0) return [current]
  const coming = next[shardOf(id, next.length)]!
  return closed.has(current.tag) ? [coming] : [current, coming]
}
