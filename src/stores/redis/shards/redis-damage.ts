/** The damaged shards of a Redis store that a handle has found: a key has another type, or a record is missing. */

import type { StoreCorruptError } from '../../../core/errors.js'
import type { Damage } from '../../contract/damage.js'
import type { RedisQueue, RedisShard } from '../layout/redis-layout.js'

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
