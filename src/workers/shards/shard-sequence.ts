/** The sequence of a queue's shards: the order in which they are asked, by the queue's `shardOrder`. */

import { ConfigError } from '../../core/errors.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue, ShardCandidate, ShardOrder } from '../../core/queue/queue.js'
import { describe, messageOf } from '../../core/values/describe.js'

/** A shard with what the worker knows of it. */
export interface KnownShard extends ShardCandidate {
  /** Ms since a claim reported the age of its head; infinite if none ever did. */
  readonly toldMs: number
}

export interface ShardSequence {
  /** Whether the order uses the ages of heads. */
  readonly needsHeads: boolean
  /** Orders these shards; it may leave some out. */
  of(shards: readonly KnownShard[]): readonly number[]
}

/** A shard without a report for longer comes first by lag: nobody knows what waits there. */
const knownForMs = 1_000

export function shardSequence({ name, shardOrder }: Queue, random: Random): ShardSequence {
  if (shardOrder === 'lag') return { needsHeads: true, of: byLag }
  if (shardOrder === 'sequential') return { needsHeads: false, of: inTurn() }
  return { needsHeads: true, of: (shards) => byFunction(name, shardOrder, shards, random) }
}

/** The greatest age first; shards without an age last. */
function byLag(shards: readonly KnownShard[]): number[] {
  const isKnown = ({ toldMs }: KnownShard) => toldMs <= knownForMs
  const unknown = shards.filter((one) => !isKnown(one)).sort((a, b) => b.toldMs - a.toldMs || 0)
  const known = shards.filter(isKnown).sort((a, b) => (b.headAgeMs ?? -1) - (a.headAgeMs ?? -1))
  return [...unknown, ...known].map(({ shard }) => shard)
}

/** Each call begins one shard later. */
function inTurn(): ShardSequence['of'] {
  let turns = 0
  return (shards) => {
    const first = shards.length === 0 ? 0 : turns % shards.length
    turns += 1
    return [...shards.slice(first), ...shards.slice(0, first)].map(({ shard }) => shard)
  }
}

/** Throws `ConfigError` if the user's order throws or names a shard that it was not given. */
function byFunction(
  queue: string,
  order: Exclude<ShardOrder, string>,
  shards: readonly KnownShard[],
  random: Random,
): number[] {
  const refused = (message: string, options?: ErrorOptions) =>
    new ConfigError(`queue '${queue}'`, [{ path: 'shardOrder', message }], options)
  let line: number[]
  try {
    line = [
      ...new Set(
        order(
          shards.map(({ toldMs: _, ...candidate }) => candidate),
          random,
        ),
      ),
    ]
  } catch (error) {
    throw refused(`threw: ${messageOf(error)}`, { cause: error })
  }
  const unknown = line.find((one) => shards.every(({ shard }) => shard !== one))
  if (unknown === undefined) return line
  throw refused(`named ${describe(unknown)}; it was given the shards ${shards.map(({ shard }) => shard).join(', ')}`)
}
