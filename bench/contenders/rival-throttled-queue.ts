/**
 * RedisThrottledQueue's calls to Redis, written anew from its description: hits in a sorted set, optimistic
 * transactions, the client's clock. A priority queue is beneath it. It has two connections, because its two guarded
 * steps are nested.
 */

import { Redis } from 'ioredis'

export interface RivalRules {
  readonly limit: number
  readonly windowMs: number
  readonly moderate: boolean
}

export class RivalThrottledQueue {
  readonly #outer: Redis
  readonly #inner: Redis
  readonly #rules: RivalRules
  readonly #keys: { readonly items: string; readonly hits: string; readonly last: string }
  /** Round trips so far. A pipeline is one. */
  trips = 0

  constructor(url: string, name: string, rules: RivalRules) {
    this.#outer = new Redis(url)
    this.#inner = new Redis(url)
    this.#rules = rules
    this.#keys = { items: name, hits: `${name}:throttle_window`, last: `${name}:throttle_time` }
  }

  async push(item: string, priority: number): Promise<void> {
    await this.#inner.zadd(this.#keys.items, -priority, item)
  }

  async pop(): Promise<string | null> {
    if (!(await this.#isAllowed())) return null
    const { items } = this.#keys
    const taken = await this.#trip(this.#inner.multi().zrange(items, '0', '0').zremrangebyrank(items, 0, 0).exec())
    const [first] = (taken?.[0]?.[1] ?? []) as string[]
    return first ?? null
  }

  async close(): Promise<void> {
    await Promise.all([this.#outer.quit(), this.#inner.quit()])
  }

  async #isAllowed(): Promise<boolean> {
    const { limit, windowMs, moderate } = this.#rules
    // A limit of one per window is spaced by itself.
    if (!moderate || limit === 1) return this.#takesHit()
    const { last } = this.#keys
    await this.#trip(this.#outer.watch(last))
    const lastAt = Number((await this.#trip(this.#outer.get(last))) ?? 0)
    if (Date.now() - lastAt < windowMs / limit || !(await this.#takesHit())) {
      await this.#trip(this.#outer.unwatch())
      return false
    }
    const set = this.#outer.multi().set(last, Date.now(), 'EX', this.#expirySeconds)
    // A pop that loses here has taken a hit all the same.
    return (await this.#trip(set.exec())) !== null
  }

  async #takesHit(): Promise<boolean> {
    const { limit, windowMs } = this.#rules
    const { hits } = this.#keys
    const now = Date.now()
    await this.#trip(this.#inner.zremrangebyscore(hits, 0, now - windowMs))
    await this.#trip(this.#inner.watch(hits))
    if ((await this.#trip(this.#inner.zcard(hits))) >= limit) {
      await this.#trip(this.#inner.unwatch())
      return false
    }
    // Members are times. With whole milliseconds, two hits at one time would be one.
    const member = `${now}.${process.hrtime.bigint()}`
    const taking = this.#inner.multi().zadd(hits, now, member).expire(hits, this.#expirySeconds)
    return (await this.#trip(taking.exec())) !== null
  }

  get #expirySeconds(): number {
    return Math.max(1, Math.trunc((2 * this.#rules.windowMs) / 1_000))
  }

  #trip<T>(answer: Promise<T>): Promise<T> {
    this.trips += 1
    return answer
  }
}
