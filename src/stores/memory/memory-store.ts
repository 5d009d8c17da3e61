/** The memory store: for tests, and the executable specification of the contract. It lives and dies with its process. */

import { setMaxListeners } from 'node:events'
import { type Clock, systemClock } from '../../core/clock.js'
import { ClosedError, UnknownQueueError } from '../../core/errors.js'
import { refuseOtherForm } from '../../core/queue.js'
import type {
  Buried,
  Claim,
  Claimed,
  Claimer,
  ClaimFrom,
  Depth,
  EnqueueCall,
  Enqueued,
  ExtendAnswer,
  ExtendItem,
  QueueSettings,
  Records,
  SettleAnswer,
  SettleItem,
  Store,
  StoredQueue,
  StoreTraits,
  Wait,
  WorkerRegistry,
} from '../store.js'
import { MemoryQueue } from './memory-queue.js'
import { memoryRecords, storedQueue } from './memory-records.js'
import { type MemoryWorker, memoryRegistry } from './memory-registry.js'

export const memoryTraits: StoreTraits = {
  name: 'memory',
  ordered: false,
  priority: true,
  groups: false,
  throttled: false,
  limited: false,
  shared: false,
  maxBatch: 250,
  maxDelayMs: Number.MAX_SAFE_INTEGER,
  maxLeaseMs: Number.MAX_SAFE_INTEGER,
  maxPayloadBytes: 1_048_576,
  exactDepth: true,
  durability: 'none',
}

type Waiter = (rung: readonly string[]) => void

/** What the handles of one memory store share, as processes share a file. */
export class MemoryData {
  readonly queues = new Map<string, MemoryQueue>()
  readonly workers = new Map<string, MemoryWorker>()
  readonly waiters = new Set<Waiter>()
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
    this.records = memoryRecords({
      queues: () => {
        this.#refuseClosed()
        return data.queues.values()
      },
      queue: (name) => {
        this.#refuseClosed()
        return this.#queue(name)
      },
      now: () => clock.now(),
      ring: (name) => this.#ring([name]),
      nextChange: async (forMs, signal) => (await this.#rung(undefined, forMs, signal)).length > 0,
    })
    this.workers = memoryRegistry(clock, data.workers, () => this.#refuseClosed())
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
    const answers = calls.map((call, i) => queues[i]!.enqueue(call, now))
    this.#ring(calls.filter((_, i) => answers[i]!.includes('added')).map((call) => call.queue))
    return answers
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(from)
    const waits: Wait[] = []
    const buried: Buried[] = []
    const heads = () => (by.heads ? { heads: queues.map((queue) => headOf(queue, now)) } : {})
    let more = false
    for (const [i, { queue: name, limit, leaseMs }] of from.entries()) {
      const queue = queues[i]!
      const held = queue.running.size
      buried.push(...queue.recover(now))
      if (queue.running.size < held) this.#ring([name])
      queue.promote(now)
      const claims: Claim[] = queue.paused
        ? []
        : queue.take(by.alone ? Math.min(limit, 1) : limit, by.worker, leaseMs ?? by.leaseMs, by.alone ?? false, now)
      more ||= queue.hasWork(now)
      if (claims.length > 0) return { now, queue: name, claims, buried, waits, ...heads(), more }
      if (queue.paused || queue.ready.size === 0) waits.push(waitOf(queue, now))
    }
    return { now, claims: [], buried, waits, ...heads(), more }
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(items)
    const answers = items.map((item, i) => queues[i]!.settle(item, now))
    const touched = new Set(queues.filter((_, i) => answers[i] === 'ok'))
    for (const queue of touched) queue.trim(now)
    this.#ring([...touched].map((queue) => queue.settings.name))
    return answers
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const queues = this.#queuesOf(items)
    return items.map((item, i) => queues[i]!.extend(item, item.leaseMs, item.beat, now))
  }

  async depth(queues: readonly string[]): Promise<{ now: number; depths: Depth[] }> {
    this.#refuseClosed()
    const now = this.#clock.now()
    return { now, depths: queues.map((name) => this.#queue(name).depth(now)) }
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseClosed()
    const withWork = queues.filter((name) => this.#queue(name).hasWork(this.#clock.now()))
    return withWork.length > 0 ? withWork : this.#rung(new Set(queues), forMs, signal)
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

  #ring(names: readonly string[]): void {
    if (names.length > 0) for (const waiter of this.#data.waiters) waiter(names)
  }

  /** The queues (of `queues`, or of all) that are rung next; none after `forMs`, when aborted or when the store closes. */
  #rung(queues: ReadonlySet<string> | undefined, forMs: number, signal: AbortSignal): Promise<string[]> {
    if (signal.aborted || this.#closing.signal.aborted || forMs <= 0) return Promise.resolve([])
    return new Promise((resolve) => {
      const done = (rung: string[]) => {
        clearTimeout(timer)
        for (const end of [signal, this.#closing.signal]) end.removeEventListener('abort', over)
        this.#data.waiters.delete(waiter)
        resolve(rung)
      }
      const over = () => done([])
      const waiter: Waiter = (names) => {
        const rung = names.filter((name) => queues === undefined || queues.has(name))
        if (rung.length > 0) done(rung)
      }
      // 2^31 − 1 is the longest timer there is; whoever waits longer just looks once more in between.
      const timer = setTimeout(over, Math.min(forMs, 0x7fffffff))
      for (const end of [signal, this.#closing.signal]) end.addEventListener('abort', over)
      this.#data.waiters.add(waiter)
    })
  }
}

function headOf(queue: MemoryQueue, now: number): { queue: string; ageMs?: number } {
  const ageMs = queue.headAgeMs(now)
  return { queue: queue.settings.name, ...(ageMs === undefined ? {} : { ageMs }) }
}

function waitOf(queue: MemoryQueue, now: number): Wait {
  if (queue.paused) return { queue: queue.settings.name, reason: 'paused' }
  const forMs = queue.nextChangeMs(now)
  const reason = queue.scheduled.size > 0 ? 'scheduled' : 'empty'
  return { queue: queue.settings.name, reason, ...(forMs === undefined ? {} : { forMs }) }
}
