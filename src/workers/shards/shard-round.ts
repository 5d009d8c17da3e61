/**
 * A round over an ordered queue's shards: which of them the next claims ask. A worker's own shards come first; once
 * they grant nothing, the others. The queue counts as empty only if these are empty too. After a ring or a rest, all
 * shards of the queue are asked.
 */

import type { Claimed } from '../../stores/contract/claim.js'
import type { KnownShard, ShardSequence } from './shard-sequence.js'

/** The shards of a queue: a worker's own, and those of others. */
export interface ShardSplit {
  readonly own: readonly number[]
  readonly others: readonly number[]
}

type Stage = 'own' | 'others' | 'all'

/** However much its own shards grant, a worker looks at the others this often: their owner may be gone, or too slow. */
export const strangeForMs = 10_000
/** Ages grow by themselves. They are requested only this often, as they cost the store work. */
const headsForMs = 100

export class ShardRound {
  readonly #line: ShardSequence
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

  constructor(line: ShardSequence, mono: () => number) {
    this.#line = line
    this.#mono = mono
    this.#strangersAt = mono()
  }

  /** Whether to request the ages of heads. */
  get wantsHeads(): boolean {
    return this.#line.needsHeads && this.#hasGranted && this.#mono() >= this.#headsAt + headsForMs
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
