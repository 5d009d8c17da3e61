/**
 * The layout of a queue: in which shards it lies, as the registry of queues says it. Pure.
 *
 * A plain queue is written down as the number of its shards: `2`. An ordered one as `4 ordered 0`: the number, and behind
 * the word its generation, which grows with every change of the number; while it is on its way to 8 shards of the next
 * generation, `4 ordered 0 to 8`. Behind that stands ` at sites` where it was made with limits, and lies with all that share
 * those; ` in sites` where it has a throttle of that scope; ` bounded` where its shards have a bound in common on what runs.
 */

import type { QueueKind, QueueSettings } from '../../contract/queue-settings.js'
import { shardOf } from '../../rules/payloads.js'
import { keysOf, orderedTag, placedTag, shardTag } from './redis-keys.js'

export interface RedisLayout {
  readonly kind: QueueKind
  readonly shards: number
  /** 0 for a plain queue. */
  readonly generation: number
  /** The number of shards that it is on its way to. */
  readonly towards?: number
  /** The place where it lies with others, absent: by itself. */
  readonly place?: string
  /** Of its throttle. */
  readonly scope?: string
  /** Ordered queues only: claims on a shard count what runs in all of them. */
  readonly isBounded?: true
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

const word = '[A-Za-z0-9][A-Za-z0-9._-]{0,79}'
const form = new RegExp(
  `^([1-9]\\d{0,3})(?: ordered (\\d{1,9})(?: to ([1-9]\\d{0,3}))?)?(?: at (${word}))?(?: in (${word}))?( bounded)?$`,
)

/** Undefined where it is none. */
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

export function layoutText({ kind, shards, generation, towards, place, scope, isBounded }: RedisLayout): string {
  const lies = kind === 'plain' ? '' : ` ordered ${generation}${towards === undefined ? '' : ` to ${towards}`}`
  const at = place === undefined ? '' : ` at ${place}`
  return `${shards}${lies}${at}${scope === undefined ? '' : ` in ${scope}`}${isBounded ? ' bounded' : ''}`
}

/** The layout in which a queue is made, and one that is there goes on under these settings. */
export function layoutFor(settings: QueueSettings, stored?: RedisLayout): RedisLayout {
  const { name, kind, throttle, maxRunning } = settings
  const isLimited = throttle !== undefined || maxRunning !== undefined
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
    ...(made.isBounded || (made.kind === 'ordered' && maxRunning !== undefined) ? { isBounded: true } : {}),
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

/** The shards that may hold something, those it is on its way to last. */
export function liveShards({ shards, next, closed }: RedisQueue): RedisShard[] {
  return [...shards.filter(({ tag }) => !closed.has(tag)), ...next]
}

/** Those that have nothing left, unless it is in transit. */
export function closedShards({ shards, closed }: RedisQueue): RedisShard[] {
  return shards.filter(({ tag }) => closed.has(tag))
}

/** What scripts are given behind the keys of a shard where all shards of its queue share a bound. */
export function siblingKeys({ layout, shards }: RedisQueue): string[] {
  return layout.isBounded ? shards.flatMap(({ keys }) => keys) : []
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
