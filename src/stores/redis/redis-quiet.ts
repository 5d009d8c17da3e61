/**
 * Quiet queues: those a claim found with nothing in them, and a wait heard nothing of since. An idle worker asks them again
 * every few seconds, in case a ring was lost; that asks only whether there is anything at all, by one plain command.
 */

import type { Clock } from '../../core/clock.js'
import type { Claimed, ClaimFrom, Wait } from '../store.js'
import type { RedisPort } from './redis-port.js'
import type { RedisShard } from './redis-queues.js'
import { numberIn } from './redis-reply.js'

interface Emptiness {
  /** What the claim was told, and when, on the monotonic clock. */
  readonly wait: Wait
  readonly foundAt: number
  /** A wait has ended since without a ring. */
  readonly isQuiet: boolean
}

/** Whoever has just found a queue empty need not look before he waits: what comes in later rings. */
const freshMs = 1_000
/** The keys that hold jobs which a claim could give, or change. */
const holding = 5

export class QuietQueues {
  readonly #port: RedisPort
  readonly #mono: Clock['mono']
  readonly #empty = new Map<string, Emptiness>()
  #now = 0
  #readAt = 0

  constructor(port: RedisPort, mono: Clock['mono']) {
    this.#port = port
    this.#mono = mono
  }

  /** A claim was answered. */
  answered(from: readonly ClaimFrom[], { now, waits, claims }: Claimed): void {
    const foundAt = this.#mono()
    this.#now = now
    this.#readAt = foundAt
    for (const { queue } of from) this.#empty.delete(queue)
    if (claims.length > 0) return
    for (const wait of waits)
      if (wait.reason === 'empty' && wait.forMs === undefined)
        this.#empty.set(wait.queue, { wait, foundAt, isQuiet: false })
    for (const { queue, reason } of waits) if (reason === 'suspect') this.#empty.delete(queue)
  }

  /** A wait has ended: with a ring for these queues, or for none. */
  waited(queues: readonly string[], rung: readonly string[]): void {
    for (const queue of rung) this.#empty.delete(queue)
    if (rung.length > 0) return
    for (const queue of queues) {
      const known = this.#empty.get(queue)
      if (known !== undefined) this.#empty.set(queue, { ...known, isQuiet: true })
    }
  }

  /** Whether the queue was found empty just now. */
  isFresh(queue: string): boolean {
    return (this.#empty.get(queue)?.foundAt ?? Number.NEGATIVE_INFINITY) >= this.#mono() - freshMs
  }

  /** The answer to a claim of queues that are all quiet and still hold nothing; undefined where they must be asked. */
  async answerTo(from: readonly ClaimFrom[], shards: readonly (readonly RedisShard[])[]): Promise<Claimed | undefined> {
    const known = from.map(({ queue }) => this.#empty.get(queue))
    if (!known.every((one) => one?.isQuiet)) return undefined
    const foundAt = this.#mono()
    if (await this.holdAnything(shards.flat())) return undefined
    for (const { wait } of known as Emptiness[]) this.#empty.set(wait.queue, { wait, foundAt, isQuiet: false })
    const waits = (known as Emptiness[]).map(({ wait }) => wait)
    const now = this.#now + Math.round(foundAt - this.#readAt)
    return { now, claims: [], crashed: [], buried: [], waits, more: false }
  }

  /** Whether there is anything in these that a claim could give or change, by one plain command; on a cluster by one for each. */
  async holdAnything(shards: readonly RedisShard[]): Promise<boolean> {
    const keys = shards.map((shard) => shard.keys.slice(0, holding))
    const asked = this.#port.isCluster ? keys : [keys.flat()]
    const counts = await Promise.allSettled(asked.map((some) => this.#port.command('EXISTS', some)))
    // Of a shard that cannot be reached nothing is known: the claim finds out.
    return counts.some((count) => count.status === 'rejected' || numberIn(count.value) > 0)
  }
}
