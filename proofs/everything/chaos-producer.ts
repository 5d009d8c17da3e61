/** The producer of the chaos: enqueues jobs of every kind under ids of its own, and each again until it is told that it was taken. */

import { setTimeout as delay } from 'node:timers/promises'
import { type Kind, LedgerWriter, monotonicMs } from './effect-lines.js'
import mill, { chained, delayed, grouped, long, ordered, plain, throttled } from './everything-mill.js'

/** How many jobs of each kind; of ordered ones the revisions, of chains the first links. */
export type ChaosJobs = Readonly<Record<Exclude<Kind, 'ticking'>, number>>

const [entities, groups] = [2_000, 60]
const perCall: Readonly<Record<keyof ChaosJobs, number>> = {
  ...{ plain: 500, ordered: 100, delayed: 50, throttled: 50, grouped: 50, chained: 10, long: 1 },
}
/** At most so many jobs wait: the run is then over soon after its last enqueue. */
const mostWaiting = 20_000
const [againMs, lookMs] = [100, 50]

export class ChaosProducer {
  /** Enqueues that were rejected, and made again. */
  rejected = 0
  accepted = 0
  readonly #ledger: LedgerWriter
  readonly #random: () => number

  constructor(folder: string, random: () => number) {
    this.#ledger = new LedgerWriter(folder)
    this.#random = random
  }

  /** All of them, of each kind in proportion. */
  async enqueueAll(jobs: ChaosJobs): Promise<void> {
    const kinds = Object.keys(perCall) as (keyof ChaosJobs)[]
    const calls = kinds.flatMap((kind) =>
      Array.from({ length: Math.ceil(jobs[kind] / perCall[kind]) }, (_, i) => {
        const from = i * perCall[kind]
        return {
          kind,
          from,
          to: Math.min(jobs[kind], from + perCall[kind]),
          at: (from + this.#random() * perCall[kind]) / jobs[kind],
        }
      }),
    )
    // Revisions of one id are sent in their order: calls of a kind stay in theirs.
    calls.sort((a, b) => a.at - b.at)
    for (const { kind, from, to } of calls) {
      await this.#untilFewWait()
      const numbers = Array.from({ length: to - from }, (_, i) => from + i)
      const ids = await this.#insist(() => this.#enqueue(kind, numbers))
      this.#ledger.accepted(kind, ids)
      this.accepted += ids.length
    }
  }

  async #enqueue(kind: keyof ChaosJobs, numbers: readonly number[]): Promise<string[]> {
    const at = monotonicMs()
    const id = (_: unknown, i: number) => ({ id: `${kind[0]}${numbers[i]}` })
    // Some take a while: who is killed has something in hand.
    const inputs = (ms: number) => numbers.map((n) => ({ at, ms: ms || (n % 10 === 0 ? 15 : 0) }))
    const many = async (task: unknown, given: readonly unknown[], each: typeof id | undefined = id) =>
      (await mill.enqueueMany(task as typeof plain, given as never[], each as never)).map((job) => job.id)
    if (kind === 'ordered') {
      const revisions = numbers.map((n) => ({ at, ms: n % 100 === 0 ? 20 : 0, id: `o${n % entities}`, rev: n }))
      await mill.enqueueMany(ordered, revisions)
      return revisions.map(({ id, rev }) => `${id}:${rev}`)
    }
    if (kind === 'plain') return many(plain, inputs(0), (_, i) => ({ ...id(_, i), priority: numbers[i]! % 3 }) as never)
    if (kind === 'delayed')
      return many(delayed, inputs(0), (_, i) => ({ ...id(_, i), delay: (numbers[i]! % 40) * 100 }) as never)
    if (kind === 'chained')
      return many(
        chained,
        numbers.map(() => ({ at, ms: 2, link: 1 })),
      )
    if (kind === 'long') return many(long, inputs(0))
    const task = kind === 'throttled' ? throttled : grouped
    return many(
      task,
      inputs(kind === 'grouped' ? 5 : 0),
      (_, i) => ({ ...id(_, i), group: `g${numbers[i]! % groups}` }) as never,
    )
  }

  async #insist<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call()
      } catch {
        this.rejected += 1
        await delay(againMs)
      }
    }
  }

  async #untilFewWait(): Promise<void> {
    while ((await this.waiting()) > mostWaiting) await delay(lookMs)
  }

  /** Jobs that wait, for later too, or run; after a while also where the store does not answer at first. */
  async waiting(): Promise<number> {
    const depths = await this.#insist(() => mill.depths())
    return depths.reduce((sum, { ready, scheduled, running }) => sum + ready + scheduled + running, 0)
  }
}
