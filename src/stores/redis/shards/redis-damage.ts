/**
 * Damage of a Redis store: shards that a handle has found damaged, the key that is to blame, and the shards of a cluster that
 * cannot be reached.
 */

import { hasCode, StoreCorruptError } from '../../../core/errors.js'
import type { Damage } from '../../contract/damage.js'
import type { RedisClient } from '../client/redis-client.js'
import { keyNames, keyTypes } from '../redis-keys.js'
import type { RedisQueue, RedisShard } from '../redis-layout.js'

interface FoundDamage {
  readonly error: StoreCorruptError
  /** When the shard is tried again, on the monotonic clock. */
  readonly until: number
}

/** How long a damaged shard is left out of claims. Asked together with other shards, it would make their claim fail. */
const leftOutMs = 30_000

export class DamagedShards {
  readonly #mono: () => number
  /** By tag. */
  readonly #found = new Map<string, FoundDamage>()

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** Call it when a script that ran on this shard alone has failed. */
  found({ tag }: RedisShard, error: StoreCorruptError): void {
    this.#found.set(tag, { error, until: this.#mono() + leftOutMs })
  }

  /** Call it when a script has succeeded on these shards. */
  answered(shards: readonly RedisShard[]): void {
    if (this.#found.size === 0) return
    for (const { tag } of shards) this.#found.delete(tag)
  }

  /** Whether the shard was found damaged a short time ago. */
  isLeftOut({ tag }: RedisShard): boolean {
    const found = this.#found.get(tag)
    return found !== undefined && found.until > this.#mono()
  }

  /** Whether the shard was damaged at the last attempt: then it is not asked together with others. */
  isDoubtful({ tag }: RedisShard): boolean {
    return this.#found.has(tag)
  }

  /** The damage to report for these shards of a queue. */
  of(queue: RedisQueue, shards: readonly RedisShard[]): Damage[] {
    if (this.#found.size === 0) return []
    const now = this.#mono()
    const isWhole = queue.shards.every(({ tag }) => this.#found.has(tag))
    return shards.flatMap(({ queue: name, shard, tag }) => {
      const found = this.#found.get(tag)
      if (found === undefined) return []
      const forMs = Math.max(0, Math.ceil(found.until - now))
      return [{ queue: name, shard, isWhole, error: found.error, forMs }]
    })
  }
}

/** The error with the queue and key that caused it, or unchanged if no key has another type. Writes nothing. */
export async function namingWrongType(
  client: RedisClient,
  shards: readonly RedisShard[],
  error: StoreCorruptError,
): Promise<StoreCorruptError> {
  const named = shards.flatMap(({ queue, kind, keys }) =>
    keys.map((key, i) => ({ queue, key, type: keyTypes[keyNames(kind)[i]!] })),
  )
  const found = await Promise.all(named.map(async ({ key }) => String(await client.command('TYPE', [key]))))
  const at = found.findIndex((type, i) => type !== 'none' && type !== named[i]!.type)
  if (at < 0) return error
  const { queue, key, type } = named[at]!
  return new StoreCorruptError(
    `queue '${queue}' cannot be used: its key '${key}' holds a ${found[at]} where Millrace keeps a ${type}. ` +
      "It was left as it is. Move or delete what is not Millrace's, or give the store a namespace of its own.",
    { cause: error },
  )
}

/** The answers of the reachable shards. Throws the first error if none could be reached, or if one fails otherwise. */
export async function partialReplies<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  const ended = await Promise.allSettled(asked)
  const answers = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const errors = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  const worst = errors.find((error) => !hasCode(error, 'store-unavailable'))
  if (worst !== undefined) throw worst
  if (answers.length === 0 && errors.length > 0) throw errors[0]
  return answers
}
