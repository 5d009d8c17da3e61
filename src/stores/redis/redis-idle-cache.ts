/**
 * The idle cache: queues, or shards of ordered ones, that a claim found empty or shut, and for which no wait has heard
 * a ring since. An idle worker asks them again every few seconds, in case a ring was lost. For an empty one, the cache
 * then asks only whether it has anything at all, by one plain command; for a shut one it asks nothing for a few
 * seconds.
 */

import type { Clock } from '../../core/platform/clock.js'
import type { Claimed, Wait } from '../contract/claim.js'
import type { RedisClient } from './client/redis-client.js'
import { numberIn } from './client/redis-reply.js'
import { keyIn } from './redis-keys.js'
import type { RedisShard } from './redis-layout.js'

/** The unit of the cache: a plain queue, or a shard of an ordered one. */
interface IdleTarget {
  readonly queue: string
  readonly shard?: number
}

interface Emptiness {
  /** The wait that the claim reported, and when, on the monotonic clock. */
  readonly wait: Wait
  readonly foundAt: number
  /** The worker that asked, and until when it is shut. Absent if it is empty. */
  readonly shut?: { readonly worker: string; readonly until: number }
  /** Since then a wait has ended without a ring. */
  readonly isQuiet: boolean
  /** The claim took its last ready jobs. A wait need not look first then; a claim must ask, since these jobs run. */
  readonly isEmptied?: true
}

/** For this long after a queue was found empty, a wait need not look first: jobs that arrive later ring. */
const freshMs = 1_000
/**
 * A shut queue is asked again at least this often. Other rules, jobs of other groups, or a clock that was set back may
 * have changed its time without a ring that was heard. No change may go unnoticed for longer than this in a `wait`.
 */
const shutMs = 5_000
/** The keys with jobs that a claim could grant or change. */
const holding = ['ready-list', 'ready', 'suspects', 'scheduled', 'leases', 'lanes'] as const
/** Those of ordered queues: a claim may bring on what is in transit. */
const orderedHolding = [...holding, 'transit'] as const

export class RedisIdleCache {
  readonly #client: RedisClient
  readonly #mono: Clock['mono']
  readonly #empty = new Map<string, Emptiness>()
  #now = 0
  #readAt = 0

  constructor(client: RedisClient, mono: Clock['mono']) {
    this.#client = client
    this.#mono = mono
  }

  /** Call it with the answer to a claim. */
  answered(asked: readonly IdleTarget[], worker: string, { now, queue, waits, claims }: Claimed): void {
    const foundAt = this.#mono()
    this.#now = now
    this.#readAt = foundAt
    for (const one of asked) this.#empty.delete(nameOf(one))
    for (const wait of waits)
      if (wait.reason === 'throttled' && wait.forMs !== undefined) {
        const shut = { worker, until: foundAt + wait.forMs }
        this.#empty.set(nameOf(wait), { wait, foundAt, shut, isQuiet: false })
      } else if (wait.reason === 'empty' && wait.forMs === undefined && claims.length === 0)
        this.#empty.set(nameOf(wait), { wait, foundAt, isQuiet: false })
      else if (wait.reason === 'empty' && wait.queue === queue)
        this.#empty.set(nameOf(wait), { wait, foundAt, isQuiet: false, isEmptied: true })
    for (const wait of waits) if (wait.reason === 'suspect') this.#empty.delete(nameOf(wait))
  }

  /** Call it when a wait has ended, with the queues that rang. */
  waited(queues: readonly string[], rung: readonly string[]): void {
    for (const [name, { wait }] of this.#empty) if (rung.includes(wait.queue)) this.#empty.delete(name)
    if (rung.length > 0) return
    for (const [name, known] of this.#empty)
      if (queues.includes(known.wait.queue)) this.#empty.set(name, { ...known, isQuiet: true })
  }

  /** Whether it was found empty or shut, or emptied, a moment ago. */
  isFresh(one: IdleTarget): boolean {
    const known = this.#empty.get(nameOf(one))
    const now = this.#mono()
    return known !== undefined && known.foundAt >= now - freshMs && !isOpen(known, now)
  }

  /**
   * The answer to a claim if everything it asks for is quiet, and still empty or shut. Undefined if the store must be
   * asked.
   */
  async answerTo(
    asked: readonly (IdleTarget & { readonly asks: readonly { readonly shard: RedisShard }[] })[],
    worker: string,
  ): Promise<Claimed | undefined> {
    const foundAt = this.#mono()
    const known: Emptiness[] = []
    for (const one of asked) {
      const found = this.#empty.get(nameOf(one))
      if (found === undefined || found.isEmptied || !found.isQuiet || isOpen(found, foundAt)) return undefined
      if (found.shut !== undefined && found.foundAt <= foundAt - shutMs) return undefined
      known.push(found)
    }
    const empty = asked.filter((_, i) => known[i]!.shut === undefined)
    if (await this.holdAnything(empty.flatMap(({ asks }) => asks.map(({ shard }) => shard)))) return undefined
    // What is shut was not asked just now.
    for (const one of known)
      this.#empty.set(nameOf(one.wait), { ...one, foundAt: one.shut ? one.foundAt : foundAt, isQuiet: false })
    const waits = known.map(({ wait, shut }): Wait => {
      if (shut === undefined) return wait
      const { lead, ...told } = { ...wait, forMs: Math.ceil(shut.until - foundAt) }
      return lead && shut.worker === worker ? { ...told, lead } : told
    })
    const now = this.#now + Math.round(foundAt - this.#readAt)
    return { now, claims: [], crashed: [], buried: [], waits, more: false }
  }

  /**
   * Whether these shards have anything that a claim could grant or change. Asks by one plain command, on a cluster by
   * one for each shard. For ordered queues another command asks whether a shard is gone: then its jobs are in others.
   */
  async holdAnything(shards: readonly RedisShard[]): Promise<boolean> {
    if (shards.length === 0) return false
    const parts = shards.map(({ kind, keys }) =>
      (kind === 'plain' ? holding : orderedHolding).map((name) => keyIn(keys, name)),
    )
    const metas = shards.flatMap(({ kind, keys }) => (kind === 'plain' ? [] : [[keyIn(keys, 'meta')]]))
    // Counted separately: a missing shard must not hide a job in another.
    const asked = [
      ...this.#together(parts).map((keys) => ({ keys, expected: 0 })),
      ...this.#together(metas).map((keys) => ({ keys, expected: keys.length })),
    ]
    const counts = await Promise.allSettled(asked.map(({ keys }) => this.#client.command('EXISTS', keys)))
    // Nothing is known of a shard that cannot be reached: the claim finds out.
    return counts.some((count, i) => count.status === 'rejected' || numberIn(count.value) !== asked[i]!.expected)
  }

  /** The keys for each command: those of all shards, or on a cluster those of one shard. */
  #together(parts: readonly (readonly string[])[]): (readonly string[])[] {
    return this.#client.isCluster || parts.length === 0 ? [...parts] : [parts.flat()]
  }
}

/** Whether it was shut, and its time is over. */
function isOpen({ shut }: Emptiness, now: number): boolean {
  return shut !== undefined && shut.until <= now
}

function nameOf({ queue, shard }: IdleTarget): string {
  return shard === undefined ? queue : `${queue} ${shard}`
}
