/** A scene: a store with one queue, and the small vocabulary of contract cases. */

import assert from 'node:assert/strict'
import type { Claim, Claimed, Claimer, ClaimFrom } from '../../../stores/contract/claim.js'
import type { History } from '../../../stores/contract/history.js'
import type { Records } from '../../../stores/contract/job-records.js'
import type { LiveMessages } from '../../../stores/contract/live-messages.js'
import type { Enqueued, NewJob } from '../../../stores/contract/new-job.js'
import type { QueueDepth } from '../../../stores/contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../../../stores/contract/queue-settings.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../../../stores/contract/settle.js'
import type { Steps } from '../../../stores/contract/steps.js'
import type { Store } from '../../../stores/contract/store.js'
import type { Throttles } from '../../../stores/contract/throttles.js'
import type { WorkerRegistry } from '../../../stores/contract/worker-registry.js'
import { limitsIn } from '../../../stores/rules/limit-rules.js'
import { type StoreHarness, UnseenError } from '../../harness/store-harness.js'
import type { Settlement } from '../../sequences/command.js'
import type { CanonicalJob, CanonicalQueue } from '../../state/canonical-state.js'

type ClaimOptions = Partial<Claimer> & { readonly queue?: string; readonly limit?: number; readonly from?: ClaimFrom[] }

export class Scene {
  readonly harness: StoreHarness
  readonly store: Store
  /** The queue of calls that name none. */
  readonly queue: string = 'mail'
  #calls = 0
  readonly #sent = new Set<string>()

  constructor(harness: StoreHarness, store: Store) {
    this.harness = harness
    this.store = store
  }

  /** A scene with its queue: without limits if `isOpen`, otherwise not open yet. */
  static async on(harness: StoreHarness, isOpen = true): Promise<Scene> {
    const scene = new Scene(harness, await harness.open())
    if (isOpen) await scene.openQueue()
    return scene
  }

  get records(): Records {
    if (this.store.records === undefined) throw new UnseenError('the store cannot look jobs up')
    return this.store.records
  }

  get workers(): WorkerRegistry {
    if (this.store.workers === undefined) throw new UnseenError('the store keeps no registry of workers')
    return this.store.workers
  }

  get messages(): LiveMessages {
    assert.ok(this.store.live, 'the store tells what happens')
    return this.store.live
  }

  get steps(): Steps {
    assert.ok(this.store.steps, 'the store keeps steps')
    return this.store.steps
  }

  get history(): History {
    assert.ok(this.store.history, 'the store keeps a history')
    return this.store.history
  }

  get throttles(): Throttles {
    assert.ok(this.store.throttles, 'the store has throttles')
    return this.store.throttles
  }

  /** Opens the queue, or another by its name. The limits hold from now on, even if others were said before. */
  async openQueue(settings: Partial<QueueSettings> = {}): Promise<StoredQueue> {
    const asked: QueueSettings = { name: this.queue, kind: 'plain', order: 'fifo', ...settings }
    const limits = limitsIn(asked)
    const isStored = Object.keys(limits).length > 0 && (await this.#isStored(asked.name))
    if (isStored) await this.records.setLimits(asked.name, limits)
    const [stored] = await this.store.open([asked])
    assert.ok(stored, 'open answers for each queue')
    return stored
  }

  async #isStored(queue: string): Promise<boolean> {
    const stored = (await this.store.records?.queues()) ?? []
    return stored.some(({ name }) => name === queue)
  }

  /** One call; a job may be given as its id alone. */
  async enqueue(
    jobs: readonly (string | (Partial<NewJob> & { readonly id: string }))[],
    call: { readonly callId?: string; readonly queue?: string } = {},
  ): Promise<Enqueued[]> {
    const { callId = `call-${++this.#calls}`, queue = this.queue } = call
    const given = jobs.map((job) => newJob(typeof job === 'string' ? { id: job } : job))
    const isResent = this.#sent.has(callId)
    this.#sent.add(callId)
    const [answers] = await this.store.enqueue([{ callId, isResent, queue, jobs: given }])
    assert.ok(answers, 'enqueue answers for each call')
    return answers
  }

  /** Enqueues jobs that must be accepted. */
  async add(...jobs: (string | (Partial<NewJob> & { readonly id: string }))[]): Promise<void> {
    assert.deepEqual(
      await this.enqueue(jobs),
      jobs.map(() => 'added'),
    )
  }

  async claim(options: ClaimOptions = {}): Promise<Claimed> {
    const { queue = this.queue, limit = 10, from = [{ queue, limit }], ...by } = options
    return this.store.claim(from, { worker: 'worker-1', leaseMs: 30_000, ...by })
  }

  /** The one job that a claim takes; there must be one. */
  async claimOne(options: ClaimOptions = {}): Promise<Claim> {
    const { claims } = await this.claim({ limit: 1, ...options })
    assert.equal(claims.length, 1, 'one job is claimed')
    return claims[0]!
  }

  /** The ids that a claim takes, in order. */
  async claimIds(options: ClaimOptions = {}): Promise<string[]> {
    return (await this.claim(options)).claims.map(({ id }) => id)
  }

  async settle(claim: ClaimKey, settlement: Settlement): Promise<SettleAnswer> {
    const [answer] = await this.store.settle([{ ...keyOf(claim), ...settlement } as SettleItem])
    assert.ok(answer, 'settle answers for each item')
    return answer
  }

  /** Settles a claim that must still be current. */
  async end(claim: ClaimKey, settlement: Settlement): Promise<void> {
    assert.equal(await this.settle(claim, settlement), 'ok')
  }

  async extend(claim: ClaimKey, extension: Partial<Omit<ExtendItem, keyof ClaimKey>> = {}): Promise<ExtendAnswer> {
    const [answer] = await this.store.extend([{ ...keyOf(claim), leaseMs: 30_000, ...extension }])
    assert.ok(answer, 'extend answers for each item')
    return answer
  }

  /** Buries a job by a claim; nothing else may be ready. */
  async addDead(id: string, job: Partial<NewJob> = {}): Promise<void> {
    await this.add({ id, ...job })
    const claim = await this.claimOne()
    assert.equal(claim.id, id)
    await this.end(claim, { kind: 'bury', error: 'broken', reason: 'unrecoverable' })
  }

  /**
   * Enqueues jobs and makes suspects of them: the worker that takes them dies. Nothing else may be ready; a second
   * passes.
   */
  async addSuspects(...jobs: (string | (Partial<NewJob> & { readonly id: string }))[]): Promise<void> {
    await this.add(...jobs)
    const { claims } = await this.claim({ worker: 'victim', leaseMs: 1_000, limit: jobs.length })
    assert.equal(claims.length, jobs.length)
    await this.advance(1_000)
    const { crashed } = await this.claim({ worker: 'finder', limit: 0 })
    assert.equal(crashed.length, jobs.length)
  }

  /** Completes a job with a kept result; nothing else may be ready. */
  async addCompleted(id: string, job: Partial<NewJob> = {}, keepMs?: number): Promise<void> {
    await this.add({ id, ...job })
    const claim = await this.claimOne()
    assert.equal(claim.id, id)
    const result = { payload: `"${id}"`, ...(keepMs === undefined ? {} : { keepMs }) }
    await this.end(claim, { kind: 'complete', result })
  }

  async advance(ms: number): Promise<void> {
    await this.harness.advance(ms)
  }

  /** The store's clock. */
  async now(): Promise<number> {
    return (await this.store.depth([this.queue])).now
  }

  async depth(queue = this.queue): Promise<QueueDepth> {
    const { depths } = await this.store.depth([queue])
    assert.equal(depths.length, 1)
    return depths[0]!
  }

  async stored(queue = this.queue): Promise<CanonicalQueue> {
    const found = (await this.harness.dump()).queues.find(({ name }) => name === queue)
    assert.ok(found, `the dump has queue '${queue}'`)
    return found
  }

  /** The job as the store holds it; it must exist. */
  async job(id: string, queue = this.queue): Promise<CanonicalJob> {
    const job = (await this.stored(queue)).jobs.find((job) => job.id === id)
    assert.ok(job, `job '${id}' is stored`)
    return job
  }

  /** `id state` of each stored job, by id. */
  async states(queue = this.queue): Promise<string[]> {
    return (await this.stored(queue)).jobs.map(({ id, state }) => `${id} ${state}`)
  }

  async rememberedIds(queue = this.queue): Promise<string[]> {
    return (await this.stored(queue)).remembered.map(({ id }) => id)
  }
}

export function newJob(job: Partial<NewJob> & { readonly id: string }): NewJob {
  return { task: 'send-mail', payload: `{"to":"${job.id}"}`, priority: 0, rememberMs: 0, ...job }
}

function keyOf({ queue, id, fence }: ClaimKey): ClaimKey {
  return { queue, id, fence }
}

/** The value of the promise. Throws if that takes longer: a store must do promptly what it must do soon. */
export async function soon<T>(promise: Promise<T>, withinMs = 5_000): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${withinMs} ms`)), withinMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
