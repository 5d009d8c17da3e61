/**
 * The shard picker of a worker: which shards each claim on an ordered queue asks. How many there are is what the store says, and
 * which are this worker's own follows from who else serves the queue, or from its `shardsOf`; both are looked up anew from
 * time to time. Queues that are not ordered have none, and are asked whole.
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
  /** Those that the worker serves. */
  readonly queues: readonly Queue[]
  readonly store: Store
  /** The queues of the mill as its store has them, in the order in which they are declared. */
  readonly stored: readonly StoredQueue[]
  /** Absent: own are those that rendezvous hashing gives this worker, among all that serve the queue. */
  readonly shardsOf: ShardsOf | undefined
  readonly mono: () => number
  readonly random: Random
}

/** A worker that was not seen for so long beside the others is taken to be gone. */
const seenWithinMs = 30_000

export class ShardPicker {
  readonly #parts: ShardPickerParts
  readonly #counts = new Map<string, number>()
  readonly #tours = new Map<string, ShardRound>()
  #others: readonly WorkerRecord[] = []
  /** Made when they are first asked for, and anew when something they depend on has changed. */
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

  /** Looks up how many shards there are, and who else serves the queues. */
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
   * Whether the queue is for others first: none of its shards was dealt to this worker, and it was looked at not long ago. Only
   * by `shardsOf`: workers that share shards out among themselves keep the weights of queues that have fewer shards than there
   * are workers.
   */
  isForOthers(queue: string): boolean {
    const tour = this.#tours.get(queue)
    if (tour === undefined || this.#parts.shardsOf === undefined || this.#split(queue).own.length > 0) return false
    return this.#parts.mono() < tour.strangersAt + strangeForMs
  }

  /** Where the next claim on the queue asks, in order. */
  next(queue: string): ClaimTarget[] {
    const tour = this.#tours.get(queue)
    return tour === undefined ? [{ queue }] : tour.next(this.#split(queue)).map((shard) => ({ queue, shard }))
  }

  /** All that there is of the queue. */
  every(queue: string): ClaimTarget[] {
    if (!this.#tours.has(queue)) return [{ queue }]
    return this.#refsOf(queue)
  }

  /** How many entries of a claim ask all that there is of the queue. */
  placesOf(queue: string): number {
    return this.#tours.has(queue) ? this.#counts.get(queue)! : 1
  }

  /** Whether a claim that asks there should tell of the ages of heads. */
  wantHeads(from: readonly ClaimTarget[]): boolean {
    return from.some(({ queue }) => this.#counts.get(queue)! > 1 && this.#tours.get(queue)!.wantsHeads)
  }

  /** Takes note of what a claim gave. Returns the queues that were asked for the last time before they are empty, and granted nothing. */
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

  /** There may be work: the queue was rung, or something in it has fallen due. */
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
