/** An ordered scene: a store with one ordered queue, and the vocabulary for the payloads of its jobs. */

import assert from 'node:assert/strict'
import type { Claim } from '../../../stores/contract/claim.js'
import type { Enqueued, NewJob } from '../../../stores/contract/new-job.js'
import type { QueueSettings, StoredQueue } from '../../../stores/contract/queue-settings.js'
import type { StoreHarness } from '../../harness/store-harness.js'
import type { CanonicalEntry, CanonicalJob, CanonicalQueue } from '../../state/canonical-state.js'
import { Scene } from './scene.js'

type Push = Partial<Omit<NewJob, 'id' | 'payload'>>

export class OrderedScene extends Scene {
  override readonly queue = 'orders'

  /** A scene with its ordered queue: one shard and no limits if `isOpen`, otherwise not open yet. */
  static override async on(harness: StoreHarness, isOpen = true): Promise<OrderedScene> {
    const scene = new OrderedScene(harness, await harness.open())
    if (isOpen) await scene.openQueue()
    return scene
  }

  override async openQueue(settings: Partial<QueueSettings> = {}): Promise<StoredQueue> {
    return super.openQueue({ kind: 'ordered', ...settings })
  }

  /** Enqueues one payload for an id. */
  async push(id: string, payload: string | Uint8Array, push: Push = {}): Promise<Enqueued> {
    const [answer] = await this.enqueue([{ id, payload, ...push }])
    return answer!
  }

  /** Enqueues payloads for an id; the score of each is its place here, from 0. */
  async pushAll(id: string, payloads: readonly string[], push: Push = {}): Promise<void> {
    await this.enqueue(payloads.map((payload, score) => ({ id, payload, score, ...push })))
  }

  /** The one job that a claim takes, with at most `maxPayloads`. */
  async take(maxPayloads = Number.POSITIVE_INFINITY, by: { leaseMs?: number; alone?: boolean } = {}): Promise<Claim> {
    return this.claimOne({ from: [{ queue: this.queue, limit: 1, maxPayloads }], ...by })
  }

  /** Buries an id by a claim; nothing else may be ready. */
  async bury(id: string, payloads: readonly string[], error = 'broken'): Promise<void> {
    await this.pushAll(id, payloads)
    const claim = await this.take()
    assert.equal(claim.id, id)
    await this.end(claim, { kind: 'bury', error, reason: 'unrecoverable' })
  }

  /** The shards of the queue. */
  async shards(queue: string = this.queue): Promise<CanonicalQueue[]> {
    return (await this.harness.dump()).queues.filter(({ name }) => name === queue)
  }

  /** The shard of an id. */
  async shardOf(id: string): Promise<number | null> {
    const holding = (await this.shards()).filter(({ jobs }) => jobs.some((job) => job.id === id))
    assert.equal(holding.length, 1, `'${id}' lies in one shard`)
    return holding[0]!.shard
  }

  /** Everything stored under an id: the live job first. */
  async all(id: string, queue: string = this.queue): Promise<CanonicalJob[]> {
    return (await this.shards(queue)).flatMap(({ jobs }) => jobs.filter((job) => job.id === id))
  }

  /** The live job of an id; it must exist. */
  async live(id: string, queue: string = this.queue): Promise<CanonicalJob> {
    const job = (await this.all(id, queue)).find(({ state }) => state !== 'dead')
    assert.ok(job, `'${id}' waits or runs`)
    return job
  }

  /** The entry of an id in the morgue; it must exist. */
  async dead(id: string, queue: string = this.queue): Promise<CanonicalJob> {
    const job = (await this.all(id, queue)).find(({ state }) => state === 'dead')
    assert.ok(job, `'${id}' lies in the morgue`)
    return job
  }

  /**
   * `id state: payloads` of everything stored, shard by shard; payloads that wait behind a running job follow a `+`.
   */
  async told(queue: string = this.queue): Promise<string[]> {
    return (await this.shards(queue)).flatMap(({ jobs }) =>
      jobs.map(({ id, state, payloads, successor }) => {
        const waiting = successor === null ? '' : ` + ${texts(successor.payloads)}`
        return `${id} ${state}: ${texts(payloads!)}${waiting}`
      }),
    )
  }
}

/** `payload score` of each. */
export function scored(entries: readonly CanonicalEntry[] | null): string[] {
  return (entries ?? []).map(({ payload, score }) => `${textOf(payload)} ${score}`)
}

/** The payloads that a claim hands over. */
export function handed(claim: Claim): unknown[] {
  return claim.payloads!.map(({ payload }) => payload)
}

/** The stamp of a job that is due at this instant. */
export function stampAt(ms: number): number {
  return ms * 1_000
}

function texts(entries: readonly CanonicalEntry[]): string {
  return entries.map(({ payload }) => textOf(payload)).join(' ')
}

function textOf(payload: string): string {
  return payload.replace('text:', '')
}
