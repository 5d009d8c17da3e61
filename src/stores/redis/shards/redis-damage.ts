/** The damaged shards of a Redis store, as one handle has found them: a key of another type, or a record that is not there. */

import type { StoreCorruptError } from '../../../core/errors.js'
import type { Damage } from '../../contract/damage.js'
import type { RedisQueue, RedisShard } from '../layout/redis-layout.js'

interface FoundDamage {
  readonly error: StoreCorruptError
  /** When it is looked at again, on the monotonic clock. */
  readonly until: number
}

/** A damaged shard is left out of claims for this long: one that is asked with others costs them their answer. */
const leftOutMs = 30_000

export class DamagedShards {
  readonly #mono: () => number
  /** By tag. */
  readonly #found = new Map<string, FoundDamage>()

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** A script failed on this shard, asked alone. */
  found({ tag }: RedisShard, error: StoreCorruptError): void {
    this.#found.set(tag, { error, until: this.#mono() + leftOutMs })
  }

  /** A script did its work on these. */
  answered(shards: readonly RedisShard[]): void {
    if (this.#found.size === 0) return
    for (const { tag } of shards) this.#found.delete(tag)
  }

  /** Whether it was found damaged a short time ago. */
  isLeftOut({ tag }: RedisShard): boolean {
    const found = this.#found.get(tag)
    return found !== undefined && found.until > this.#mono()
  }

  /** Whether it was damaged when it was last looked at: it is not asked with others. */
  isDoubtful({ tag }: RedisShard): boolean {
    return this.#found.has(tag)
  }

  /** What is to be told of these shards of a queue. */
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
