/**
 * A round over an ordered queue's shards: which of them the next claims ask. A worker's own shards come first; when they have
 * granted nothing, the others; the queue is found empty only when these are empty too. A queue that was heard of, or is
 * looked at again after a rest, is asked on all its shards.
 */

import type { Claimed } from '../../stores/contract/claim.js'
import type { KnownShard, ShardSequence } from './shard-sequence.js'

/** The shards of a queue: a worker's own, and those of others. */
export interface ShardSplit {
  readonly own: readonly number[]
  readonly others: readonly number[]
}

type Stage = 'own' | 'others' | 'all'

/** However much its own shards grant, a worker looks so often at the others: their owner may be gone, or not keep up. */
export const strangeForMs = 10_000
/** Ages grow by themselves; they are asked for only so often, as it costs the store to tell them. */
const headsForMs = 100

export class ShardRound {
  readonly #line: ShardSequence
  readonly #mono: () => number
  readonly #heads = new Map<number, { readonly headAt: number | undefined; readonly toldAt: number }>()
  #stages: Stage[] = ['own', 'others']
  /** Of the first stage: what has not been asked; none where it has not been planned. */
  #unasked: readonly number[] = []
  /** Something in these has fallen due. */
  readonly #due = new Set<number>()
  #hasGranted = false
  #headsAt = Number.NEGATIVE_INFINITY
  #strangersAt: number

  constructor(line: ShardSequence, mono: () => number) {
    this.#line = line
    this.#mono = mono
    this.#strangersAt = mono()
  }

  /** Whether the ages of heads are worth asking for. */
  get wantsHeads(): boolean {
    return this.#line.needsHeads && this.#hasGranted && this.#mono() >= this.#headsAt + headsForMs
  }

  /** Since when, on the monotonic clock, nothing was asked but its own shards, where it has any. */
  get strangersAt(): number {
    return this.#strangersAt
  }

  /** The shards to ask next, in order; never none. */
  next(split: ShardSplit): readonly number[] {
    // An order that leaves out everything must not leave the queue to nobody.
    if (this.#unasked.length === 0 && !this.#plan(split)) this.#unasked = [...split.own, ...split.others]
    return this.#unasked
  }

  /** These were asked and granted nothing. True where they were the last: the queue is empty. */
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

  /** It was rung; or something in this shard has fallen due. */
  heard(shard?: number): void {
    if (shard !== undefined) this.#due.add(shard)
    this.#begin(['all'])
  }

  /** What a claim told of its shards. */
  told(heads: NonNullable<Claimed['heads']>): void {
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
    if (stage === 'own') return this.#inLine(own)
    this.#strangersAt = this.#mono()
    if (stage === 'others') return this.#inLine(others)
    const due = [...own, ...others].filter((shard) => this.#due.has(shard))
    return [...new Set([...due, ...this.#inLine(own), ...this.#inLine(others)])]
  }

  #inLine(shards: readonly number[]): number[] {
    return shards.length === 0 ? [] : [...this.#line.of(shards.map((shard) => this.#known(shard)))]
  }

  #known(shard: number): KnownShard {
    const now = this.#mono()
    const head = this.#heads.get(shard)
    if (head === undefined) return { shard, toldMs: Number.POSITIVE_INFINITY }
    const { headAt, toldAt } = head
    return { shard, toldMs: now - toldAt, ...(headAt === undefined ? {} : { headAgeMs: now - headAt }) }
  }
}
