/**
 * The shard picker of a worker: which shards each claim on an ordered queue asks. The store says how many shards there
 * are. The worker's own ones follow from the other workers of the queue, or from its `shardsOf`. Both are looked up
 * again from time to time. Plain queues have no shards here, and are asked whole.
 */

import { ConfigError } from '../../core/errors.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue } from '../../core/queue/queue.js'
import { describe, messageOf } from '../../core/values/describe.js'
import type { Claimed } from '../../stores/contract/claim.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { Store } from '../../stores/contract/store.js'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'
import type { ClaimTarget } from './claim-target.js'
import { dealt, ownShards, type ShardRef, type ShardsOf } from './shard-owners.js'
import { ShardRound, type ShardSplit, strangeForMs } from './shard-round.js'
import { shardSequence } from './shard-sequence.js'

interface ShardPickerParts {
  readonly worker: string
  /** The queues that the worker serves. */
  readonly queues: readonly Queue[]
  readonly store: Store
  /** The queues of the mill as its store has them, in the order of their declaration. */
  readonly stored: readonly StoredQueue[]
  /** Absent: rendezvous hashing among all workers of the queue chooses this worker's own shards. */
  readonly shardsOf: ShardsOf | undefined
  readonly mono: () => number
  readonly random: Random
}

/** Another worker that was not seen for this long is taken to be gone. */
const seenWithinMs = 30_000

export class ShardPicker {
  readonly #parts: ShardPickerParts
  readonly #counts = new Map<string, number>()
  readonly #tours = new Map<string, ShardRound>()
  #others: readonly WorkerRecord[] = []
  /** Made when first needed, and made again when something that they depend on has changed. */
  #splits = new Map<string, ShardSplit>()

  constructor(parts: ShardPickerParts) {
    const { queues, random, mono } = parts
    this.#parts = parts
    this.#count(parts.stored)
    for (const queue of queues)
      if (this.#counts.has(queue.name)) this.#tours.set(queue.name, new ShardRound(shardSequence(queue, random), mono))
  }

  /** Whether any queue that is served has shards. */
  get areServed(): boolean {
    return this.#tours.size > 0
  }

  /** Looks up the number of shards and the other workers of the queues. */
  async refresh(): Promise<void> {
    const { store, worker, shardsOf } = this.#parts
    const asksWho = store.traits.shared && shardsOf === undefined
    const [stored, workers] = await Promise.all([store.records?.queues(), asksWho ? store.workers?.list() : undefined])
    if (stored !== undefined) this.#count(stored.filter(({ name }) => this.#counts.has(name)))
    if (workers !== undefined) {
      const latest = Math.max(...workers.map(({ seenAt }) => seenAt))
      this.#others = workers.filter(({ id, seenAt }) => id !== worker && seenAt >= latest - seenWithinMs)
    }
    this.#splits = new Map()
  }

  /**
   * Whether the queue is for others first: no shard was dealt to this worker, and it looked not long ago. Only with
   * `shardsOf`: workers that share shards among themselves keep the weights of queues with fewer shards than workers.
   */
  isForOthers(queue: string): boolean {
    const tour = this.#tours.get(queue)
    if (tour === undefined || this.#parts.shardsOf === undefined || this.#split(queue).own.length > 0) return false
    return this.#parts.mono() < tour.strangersAt + strangeForMs
  }

  /** The targets of the next claim on the queue, in order. */
  next(queue: string): ClaimTarget[] {
    const tour = this.#tours.get(queue)
    return tour === undefined ? [{ queue }] : tour.next(this.#split(queue)).map((shard) => ({ queue, shard }))
  }

  /** All targets of the queue. */
  every(queue: string): ClaimTarget[] {
    if (!this.#tours.has(queue)) return [{ queue }]
    return this.#refsOf(queue)
  }

  /** The number of claim entries that cover the whole queue. */
  placesOf(queue: string): number {
    return this.#tours.has(queue) ? this.#counts.get(queue)! : 1
  }

  /** Whether a claim on these targets should report the ages of heads. */
  wantHeads(from: readonly ClaimTarget[]): boolean {
    return from.some(({ queue }) => this.#counts.get(queue)! > 1 && this.#tours.get(queue)!.wantsHeads)
  }

  /**
   * Notes the answer to a claim. Returns the queues whose last targets were asked and granted nothing: they are empty.
   */
  answered(from: readonly ClaimTarget[], { queue: granting, heads }: Claimed): string[] {
    const empty: string[] = []
    for (const queue of new Set(from.map((place) => place.queue))) {
      const tour = this.#tours.get(queue)
      if (heads !== undefined) tour?.told(heads.filter((head) => head.queue === queue))
      if (queue === granting) {
        tour?.granted()
        break
      }
      const shards = from.filter((place) => place.queue === queue).map(({ shard }) => shard!)
      if (tour === undefined || tour.foundEmpty(shards, this.#split(queue))) empty.push(queue)
    }
    return empty
  }

  /** The queue was rung, or something in it has fallen due: there may be work. */
  heard({ queue, shard }: ClaimTarget): void {
    this.#tours.get(queue)?.heard(shard)
  }

  #count(stored: readonly StoredQueue[]): void {
    for (const { name, kind, shards } of stored) if (kind === 'ordered') this.#counts.set(name, shards)
  }

  #split(queue: string): ShardSplit {
    let split = this.#splits.get(queue)
    if (split === undefined) {
      const own = new Set(this.#own(queue))
      const shards = [...Array(this.#counts.get(queue)!).keys()]
      split = { own: shards.filter((shard) => own.has(shard)), others: shards.filter((shard) => !own.has(shard)) }
      this.#splits.set(queue, split)
    }
    return split
  }

  #own(queue: string): readonly number[] {
    const { worker, shardsOf } = this.#parts
    if (shardsOf !== undefined)
      return this.#picked(shardsOf)
        .filter((one) => one.queue === queue)
        .map(({ shard }) => shard)
    const others = this.#others.filter(({ queues }) => queues.includes(queue)).map(({ id }) => id)
    return ownShards(worker, [worker, ...others], queue, this.#counts.get(queue)!)
  }

  #picked(shardsOf: ShardsOf): readonly ShardRef[] {
    const all = [...this.#counts.keys()].flatMap((queue) => this.#refsOf(queue))
    if (typeof shardsOf !== 'function') return dealt(all, shardsOf.member, shardsOf.members)
    const refuse = (message: string, options?: ErrorOptions): never => {
      throw new ConfigError('the worker', [{ path: 'shardsOf', message }], options)
    }
    let picked: readonly ShardRef[]
    try {
      picked = [...shardsOf(all)]
    } catch (error) {
      return refuse(`threw: ${messageOf(error)}`, { cause: error })
    }
    const stranger = picked.find((one) => !all.some(({ queue, shard }) => queue === one.queue && shard === one.shard))
    if (stranger === undefined) return picked
    return refuse(
      `picked shard ${describe(stranger.shard)} of queue ${describe(stranger.queue)}, which it was not given`,
    )
  }

  #refsOf(queue: string): ShardRef[] {
    return [...Array(this.#counts.get(queue)!).keys()].map((shard) => ({ queue, shard }))
  }
}
