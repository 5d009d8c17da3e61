/**
 * The shard picker of a worker: which shards each claim on an ordered queue asks. The store says how many shards there
 * are. The worker's own ones follow from the other workers of the queue, or from its `shardsOf`. Both are looked up
 * again from time to time. Plain queues have no shards here, and are asked whole.
 */

import { ConfigError } from '../../core/errors.js'
import { describe, messageOf } from '../../core/messages/describe.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue, ShardCandidate, ShardOrder } from '../../core/queue/queue.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import type { Claimed } from '../../stores/contract/claim.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { Store } from '../../stores/contract/store.js'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'
import type { ClaimTarget } from './claim-calls.js'
import { dealt, ownShards, type ShardRef, type ShardsOf } from './shard-owners.js'

/** Another worker that was not seen for this long is taken to be gone. */
const seenWithinMs = 30_000

export class ShardPicker {
  readonly #surroundings: WorkerSurroundings
  readonly #store: Store
  readonly #shardsOf: ShardsOf | undefined
  readonly #counts = new Map<string, number>()
  readonly #rounds = new Map<string, ShardRound>()
  #others: readonly WorkerRecord[] = []
  /** Made when first needed, and made again when something that they depend on has changed. */
  #splits = new Map<string, ShardSplit>()

  /**
   * `queues`: those that the worker serves. `stored`: those of the mill as the store has them, in the order of their
   * declaration. `shardsOf` absent: rendezvous hashing among all workers of the queue chooses this worker's own shards.
   */
  constructor(
    surroundings: WorkerSurroundings,
    store: Store,
    queues: readonly Queue[],
    stored: readonly StoredQueue[],
    shardsOf: ShardsOf | undefined,
  ) {
    const { random, clock } = surroundings
    const mono = () => clock.mono()
    this.#surroundings = surroundings
    this.#store = store
    this.#shardsOf = shardsOf
    this.#count(stored)
    for (const queue of queues)
      if (this.#counts.has(queue.name)) this.#rounds.set(queue.name, new ShardRound(shardSequence(queue, random), mono))
  }

  /** Whether any queue that is served has shards. */
  get areServed(): boolean {
    return this.#rounds.size > 0
  }

  /** Looks up the number of shards and the other workers of the queues. */
  async refresh(): Promise<void> {
    const store = this.#store
    const { worker } = this.#surroundings
    const asksWho = store.traits.shared && this.#shardsOf === undefined
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
    const round = this.#rounds.get(queue)
    if (round === undefined || this.#shardsOf === undefined || this.#split(queue).own.length > 0) return false
    return this.#surroundings.clock.mono() < round.strangersAt + strangeForMs
  }

  /** The targets of the next claim on the queue, in order. */
  next(queue: string): ClaimTarget[] {
    const round = this.#rounds.get(queue)
    return round === undefined ? [{ queue }] : round.next(this.#split(queue)).map((shard) => ({ queue, shard }))
  }

  /** All targets of the queue. */
  every(queue: string): ClaimTarget[] {
    if (!this.#rounds.has(queue)) return [{ queue }]
    return this.#refsOf(queue)
  }

  /** The number of claim entries that cover the whole queue. */
  entriesOf(queue: string): number {
    return this.#rounds.has(queue) ? this.#counts.get(queue)! : 1
  }

  /** Whether a claim on these targets should report the ages of heads. */
  wantHeads(from: readonly ClaimTarget[]): boolean {
    return from.some(({ queue }) => this.#counts.get(queue)! > 1 && this.#rounds.get(queue)!.wantsHeads)
  }

  /**
   * Notes the answer to a claim. Returns the queues whose last targets were asked and granted nothing: they are empty.
   */
  answered(from: readonly ClaimTarget[], { queue: granting, heads }: Claimed): string[] {
    const empty: string[] = []
    for (const queue of new Set(from.map((target) => target.queue))) {
      const round = this.#rounds.get(queue)
      if (heads !== undefined) round?.onHeads(heads.filter((head) => head.queue === queue))
      if (queue === granting) {
        round?.granted()
        break
      }
      const shards = from.filter((target) => target.queue === queue).map(({ shard }) => shard!)
      if (round === undefined || round.foundEmpty(shards, this.#split(queue))) empty.push(queue)
    }
    return empty
  }

  /** The queue was rung, or something in it has fallen due: there may be work. */
  heard({ queue, shard }: ClaimTarget): void {
    this.#rounds.get(queue)?.heard(shard)
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
    const shardsOf = this.#shardsOf
    const { worker } = this.#surroundings
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

/** The shards of a queue: a worker's own, and those of others. */
interface ShardSplit {
  readonly own: readonly number[]
  readonly others: readonly number[]
}

type Stage = 'own' | 'others' | 'all'

/** A worker looks at the shards of others this often, even if its own grant jobs: their owner may be gone, or too slow. */
const strangeForMs = 10_000
/** Ages grow by themselves. They are requested only this often, as they cost the store work. */
const headsForMs = 100

/**
 * A round over the shards of one queue: which of them the next claims ask. A worker's own shards come first; once
 * they grant nothing, the others. The queue counts as empty only if these are empty too. After a ring or a rest, all
 * shards of the queue are asked.
 */
export class ShardRound {
  readonly #sequence: ShardSequence
  readonly #mono: () => number
  readonly #heads = new Map<number, { readonly headAt: number | undefined; readonly toldAt: number }>()
  #stages: Stage[] = ['own', 'others']
  /** The shards of the first stage that were not asked; none before the stage is planned. */
  #unasked: readonly number[] = []
  /** Shards in which something has fallen due. */
  readonly #due = new Set<number>()
  #hasGranted = false
  #headsAt = Number.NEGATIVE_INFINITY
  #strangersAt: number

  constructor(sequence: ShardSequence, mono: () => number) {
    this.#sequence = sequence
    this.#mono = mono
    this.#strangersAt = mono()
  }

  /** Whether to request the ages of heads. */
  get wantsHeads(): boolean {
    return this.#sequence.needsHeads && this.#hasGranted && this.#mono() >= this.#headsAt + headsForMs
  }

  /** Since when, on the monotonic clock, only its own shards were asked, if it has any. */
  get strangersAt(): number {
    return this.#strangersAt
  }

  /** The shards to ask next, in order; at least one. */
  next(split: ShardSplit): readonly number[] {
    // A user's order that leaves out all shards must not abandon the queue.
    if (this.#unasked.length === 0 && !this.#plan(split)) this.#unasked = [...split.own, ...split.others]
    return this.#unasked
  }

  /** These were asked and granted nothing. True if they were the last: the queue is empty. */
  foundEmpty(shards: readonly number[], split: ShardSplit): boolean {
    this.#hasGranted = false
    for (const shard of shards) this.#due.delete(shard)
    this.#unasked = this.#unasked.filter((shard) => !shards.includes(shard))
    if (this.#unasked.length > 0) return false
    this.#stages.shift()
    if (this.#plan(split)) return false
    this.#begin(['all'])
    return true
  }

  /** One of its shards granted something. */
  granted(): void {
    this.#hasGranted = true
    const isStrange = this.#mono() >= this.#strangersAt + strangeForMs
    this.#begin(isStrange ? ['others', 'own'] : ['own', 'others'])
  }

  /** The queue was rung, or something in this shard has fallen due. */
  heard(shard?: number): void {
    if (shard !== undefined) this.#due.add(shard)
    this.#begin(['all'])
  }

  /** Notes a claim's report on its shards. */
  onHeads(heads: NonNullable<Claimed['heads']>): void {
    const toldAt = this.#mono()
    this.#headsAt = toldAt
    for (const { shard, ageMs } of heads) {
      if (shard === undefined) continue
      this.#heads.set(shard, { headAt: ageMs === undefined ? undefined : toldAt - ageMs, toldAt })
    }
  }

  #begin(stages: Stage[]): void {
    this.#stages = stages
    this.#unasked = []
  }

  /** Plans the first stage that has any shards; false where none is left. */
  #plan(split: ShardSplit): boolean {
    for (; this.#stages.length > 0; this.#stages.shift()) {
      this.#unasked = this.#planned(this.#stages[0]!, split)
      if (this.#unasked.length > 0) return true
    }
    return false
  }

  #planned(stage: Stage, { own, others }: ShardSplit): number[] {
    if (stage === 'own') return this.#inOrder(own)
    this.#strangersAt = this.#mono()
    if (stage === 'others') return this.#inOrder(others)
    const due = [...own, ...others].filter((shard) => this.#due.has(shard))
    return [...new Set([...due, ...this.#inOrder(own), ...this.#inOrder(others)])]
  }

  #inOrder(shards: readonly number[]): number[] {
    return shards.length === 0 ? [] : [...this.#sequence.of(shards.map((shard) => this.#known(shard)))]
  }

  #known(shard: number): KnownShard {
    const now = this.#mono()
    const head = this.#heads.get(shard)
    if (head === undefined) return { shard, toldMs: Number.POSITIVE_INFINITY }
    const { headAt, toldAt } = head
    return { shard, toldMs: now - toldAt, ...(headAt === undefined ? {} : { headAgeMs: now - headAt }) }
  }
}

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

/** The order in which the shards of a queue are asked, by its `shardOrder`. */
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
