/** An ordered scene: an ordered queue `orders` on a real store, as two operators see it, each by a handle of its own. */

import { jsonCodec } from 'millrace'
import type { NewJob, Store } from 'millrace/store'
import { type HarnessMaker, memoryHarness, type StoreHarness } from 'millrace/store-testing'
import { onTestFinished } from 'vitest'
import { type AdminParts, QueueAdmin } from '#src/client/admin/queue-admin.js'
import { Packing } from '#src/core/packing/packing.js'
import { systemClock } from '#src/core/platform/clock.js'
import { Registry } from '#src/core/registry.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { sqliteTraits } from '#src/stores/sqlite/sqlite-traits.js'

/** The stores that have ordered queues and need no server. */
export const orderedStores: readonly (readonly [string, HarnessMaker])[] = [
  ['memory', memoryHarness],
  ...(sqliteTraits.ordered ? [['sqlite', sqliteHarness] as const] : []),
]

/** The parts of an administration by somebody who declares nothing. */
export function adminParts(store: Store): AdminParts {
  const connect = async () => store
  const enqueue = () => Promise.reject(new Error('nobody enqueues here'))
  return {
    ...{ connect, look: connect, packing: new Packing(jsonCodec), registry: new Registry([], []), clock: systemClock },
    ...{ repeater: { enqueue, idempotencyMs: 60_000 }, closing: new AbortController().signal },
  }
}

export class OrderedScene {
  readonly harness: StoreHarness
  readonly store: Store
  readonly #other: Store
  #calls = 0

  private constructor(harness: StoreHarness, store: Store, other: Store) {
    this.harness = harness
    this.store = store
    this.#other = other
  }

  static async on(make: HarnessMaker, shards = 4): Promise<OrderedScene> {
    const harness = await make()
    onTestFinished(() => harness.close())
    const [store, other] = [await harness.open(), await harness.open()]
    for (const one of [store, other])
      await one.open([
        ...['orders', 'later'].map((name) => ({ ...queueSettings, name, kind: 'ordered' as const, shards })),
        { ...queueSettings, name: 'mail', kind: 'plain' },
      ])
    return new OrderedScene(harness, store, other)
  }

  /** Administration of a queue by one operator. */
  admin(queue = 'orders'): QueueAdmin {
    return new QueueAdmin(queue, adminParts(this.store))
  }

  /** By another. */
  otherAdmin(queue = 'orders'): QueueAdmin {
    return new QueueAdmin(queue, adminParts(this.#other))
  }

  /** One payload for each, by id alone with one of its own. */
  async push(jobs: readonly (string | (Partial<NewJob> & { readonly id: string }))[], queue = 'orders') {
    const given = jobs.map((job) => {
      const { id, ...rest } = typeof job === 'string' ? { id: job } : job
      return { id, task: 'sync-order', payload: JSON.stringify({ of: id }), priority: 0, rememberMs: 0, ...rest }
    })
    const [answers] = await this.store.enqueue([{ callId: `call-${++this.#calls}`, queue, jobs: given }])
    return answers!
  }

  async claim(limit = 1, maxPayloads?: number) {
    const from = [{ queue: 'orders', limit, ...(maxPayloads !== undefined && { maxPayloads }) }]
    return (await this.store.claim(from, { worker: 'w', leaseMs: 30_000 })).claims
  }

  /** Puts a job of these ids into the morgue. */
  async bury(ids: readonly string[]): Promise<void> {
    await this.push(ids)
    await this.admin().jobs.bury([...ids])
  }
}

const queueSettings = { order: 'fifo', maxCrashes: 3, dead: {} } as const

/** `n` ids that all have the same length. */
export function someIds(n: number, prefix = 'o'): string[] {
  return Array.from({ length: n }, (_, i) => `${prefix}${String(i).padStart(5, '0')}`)
}
