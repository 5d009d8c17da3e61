/** The memory store: for tests, and the executable specification of the contract. It lives and dies with its process. */

import { setMaxListeners } from 'node:events'
import { type Clock, systemClock } from '../../core/clock.js'
import { ClosedError, UnknownQueueError } from '../../core/errors.js'
import { refuseOtherForm } from '../../core/queue.js'
import type { Records } from '../job-records.js'
import type {
  Claimed,
  Claimer,
  ClaimFrom,
  Depth,
  EnqueueCall,
  Enqueued,
  ExtendAnswer,
  ExtendItem,
  QueueSettings,
  SettleAnswer,
  SettleItem,
  Store,
  StoredQueue,
  StoreTraits,
} from '../store.js'
import type { WorkerRegistry } from '../worker-registry.js'
import type { MemoryAdmin } from './memory-admin.js'
import { MemoryBell } from './memory-bell.js'
import { type Asked, claimFrom } from './memory-claim.js'
import { depth, oldestAgeMs } from './memory-depth.js'
import { enqueue } from './memory-enqueue.js'
import { MemoryQueue } from './memory-queue.js'
import { memoryRecords, storedQueue } from './memory-records.js'
import { type MemoryWorker, memoryRegistry } from './memory-registry.js'
import { trim } from './memory-retention.js'
import { extend, settle } from './memory-settle.js'

export const memoryTraits: StoreTraits = {
  name: 'memory',
  ordered: false,
  priority: true,
  groups: false,
  throttled: false,
  limited: false,
  shared: false,
  replicated: false,
  remote: false,
  maxBatch: 250,
  maxDelayMs: Number.MAX_SAFE_INTEGER,
  maxLeaseMs: Number.MAX_SAFE_INTEGER,
  maxPayloadBytes: 1_048_576,
  exactDepth: true,
  beatsFromThread: false,
  durability: 'none',
}

/** What the handles of one memory store share, as processes share a file. */
export class MemoryData {
  readonly queues = new Map<string, MemoryQueue>()
  readonly workers = new Map<string, MemoryWorker>()
  readonly bell = new MemoryBell()
}

export class MemoryStore implements Store {
  readonly traits = memoryTraits
  readonly records: Records
  readonly workers: WorkerRegistry
  readonly #clock: Clock
  readonly #data: MemoryData
  readonly #closing = new AbortController()

  constructor(clock: Clock = systemClock, data = new MemoryData()) {
    this.#clock = clock
    this.#data = data
    // One listener for each wait under way, and there is no limit to those.
    setMaxListeners(0, this.#closing.signal)
    const admin: MemoryAdmin = {
      queues: () => {
        this.#refuseClosed()
        return data.queues.values()
      },
      queue: (name) => {
        this.#refuseClosed()
        return this.#queue(name)
      },
      now: () => clock.now(),
      ring: (queue) => this.#ring(queue),
      tellEnds: () => data.bell.tellEnds(),
      nextEnd: (forMs, signal) => data.bell.ended(forMs, [signal, this.#closing.signal]),
    }
    this.records = memoryRecords(admin)
    this.workers = memoryRegistry(admin, () => {
      this.#refuseClosed()
      return data.workers
    })
  }

  async open(queues: readonly QueueSettings[]): Promise<StoredQueue[]> {
    this.#refuseClosed()
    for (const settings of queues) {
      const stored = this.#data.queues.get(settings.name)?.settings
      if (stored !== undefined) refuseOtherForm(settings.name, stored, settings)
    }
    return queues.map((settings) => {
      const queue = this.#data.queues.get(settings.name) ?? new MemoryQueue(settings)
      queue.settings = settings
      this.#data.queues.set(settings.name, queue)
      return storedQueue(queue)
    })
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(calls)
    const answers = calls.map((call, i) => enqueue(queues[i]!, call, now))
    const added = calls.flatMap(({ queue, jobs }, i) =>
      jobs.filter((_, n) => answers[i]![n] === 'added').map(({ id }) => ({ queue, id })),
    )
    this.#ringFor(added, now)
    return answers
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(from)
    const asked: Asked[] = []
    for (const [i, queue] of queues.entries()) {
      asked.push(claimFrom(queue, from[i]!, by, now))
      if (asked[i]!.rings) this.#ring(queue)
      if (asked[i]!.claims.length > 0) break
    }
    const claims = asked.flatMap((one) => one.claims)
    const crashed = asked.flatMap((one) => one.crashed)
    if (crashed.length > 0) this.#data.bell.tellEnds()
    return {
      now,
      ...(claims.length > 0 ? { queue: claims[0]!.queue } : {}),
      claims,
      crashed,
      buried: asked.flatMap((one) => one.buried),
      waits: asked.flatMap((one) => one.waits),
      ...(by.heads ? { heads: queues.map((queue) => headOf(queue, now)) } : {}),
      more: asked.some((one) => one.more),
    }
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(items)
    const answers = items.map((item, i) => settle(queues[i]!, item, now))
    const settled = items.filter((_, i) => answers[i] === 'ok')
    for (const queue of new Set(this.#queuesOf(settled))) trim(queue, now)
    this.#ringFor(settled, now)
    if (settled.length > 0) this.#data.bell.tellEnds()
    return answers
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(items)
    return items.map((item, i) => extend(queues[i]!, item, now))
  }

  async depth(queues: readonly string[]): Promise<{ now: number; depths: Depth[] }> {
    this.#refuseClosed()
    const now = this.#clock.now()
    return { now, depths: queues.map((name) => depth(this.#queue(name), now)) }
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const asked = queues.map((name) => this.#queue(name))
    // Nobody was there to hear of a job for later; without a lead it would be noticed late.
    const unheard = signal.aborted ? [] : this.#data.bell.unheard(queues)
    const found = asked
      .filter((queue) => queue.needsClaimer(now) || (unheard.includes(queue.settings.name) && queue.needsLead(now)))
      .map((queue) => queue.settings.name)
    if (found.length > 0) return found
    const rung = await this.#data.bell.rung(queues, forMs, [signal, this.#closing.signal])
    return rung === undefined ? [] : [rung]
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new ClosedError('the memory store')
  }

  #queue(name: string): MemoryQueue {
    const queue = this.#data.queues.get(name)
    if (queue === undefined) throw new UnknownQueueError(name, [...this.#data.queues.keys()])
    return queue
  }

  /** All are looked up before the first is changed: an unknown one changes nothing. */
  #queuesOf(items: readonly { readonly queue: string }[]): MemoryQueue[] {
    return items.map((item) => this.#queue(item.queue))
  }

  #ring(queue: MemoryQueue): void {
    if (!queue.paused) this.#data.bell.ring(queue.settings.name)
  }

  /** Rings each queue once where one of these jobs is a reason to. */
  #ringFor(jobs: readonly { readonly queue: string; readonly id: string }[], now: number): void {
    const calling = jobs.filter(({ queue, id }) => this.#queue(queue).isCalling(id, now))
    for (const queue of new Set(this.#queuesOf(calling))) this.#ring(queue)
  }
}

function headOf(queue: MemoryQueue, now: number): { queue: string; ageMs?: number } {
  const ageMs = oldestAgeMs(queue.ready, now)
  return { queue: queue.settings.name, ...(ageMs === undefined ? {} : { ageMs }) }
}
