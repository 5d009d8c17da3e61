/** The memory store: for tests, and the executable specification of the contract. It lives and dies with its process. */

import { type Clock, systemClock } from '../../core/clock.js'
import { ClosedError, ConfigConflictError, UnknownQueueError } from '../../core/errors.js'
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
import { memoryRegistry } from './memory-registry.js'

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

/** Called with the queue that was rung, or with undefined when the wait is over. */
type Waiter = { readonly queues: ReadonlySet<string>; readonly wake: () => void }

export class MemoryStore implements Store {
  readonly traits = memoryTraits
  readonly queues = new Map<string, MemoryQueue>()
  readonly records: Records
  readonly workers: WorkerRegistry
  readonly #clock: Clock
  readonly #waiters = new Set<Waiter>()
  #closed = false

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
    this.records = memoryRecords({
      queues: this.queues,
      queue: (name) => this.#queue(name),
      now: () => clock.now(),
      ring: (name) => this.#ring([name]),
      nextChange: (forMs, signal) => this.#sleep(new Set(this.queues.keys()), forMs, signal),
    })
    this.workers = memoryRegistry(clock)
  }

  async open(queues: readonly QueueSettings[]): Promise<StoredQueue[]> {
    this.#refuseClosed()
    for (const settings of queues) {
      const stored = this.queues.get(settings.name)?.settings
      for (const property of ['kind', 'order'] as const) {
        if (stored !== undefined && stored[property] !== settings[property]) {
          throw new ConfigConflictError(
            settings.name,
            property,
            stored[property],
            settings[property],
            remedies[property],
          )
        }
      }
    }
    return queues.map((settings) => {
      const queue = this.queues.get(settings.name) ?? new MemoryQueue(settings)
      queue.settings = settings
      this.queues.set(settings.name, queue)
      return storedQueue(queue)
    })
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    this.#refuseClosed()
    const queues = calls.map((call) => this.#queue(call.queue))
    const answers = calls.map((call, i) => queues[i]!.enqueue(call, this.#clock.now()))
    this.#ring(calls.filter((_, i) => answers[i]!.includes('added')).map((call) => call.queue))
    return answers
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const waits: Wait[] = []
    const buried: Buried[] = []
    const heads = () => (by.heads ? { heads: from.map(({ queue }) => headOf(this.#queue(queue), now)) } : {})
    let more = false
    for (const { queue: name, limit, leaseMs } of from) {
      const queue = this.#queue(name)
      buried.push(...queue.recover(now))
      queue.promote(now)
      const claims: Claim[] = queue.paused
        ? []
        : queue.take(by.alone ? Math.min(limit, 1) : limit, by.worker, leaseMs ?? by.leaseMs, by.alone ?? false, now)
      more ||= !queue.paused && queue.ready.size > 0
      if (claims.length > 0) return { now, queue: name, claims, buried, waits, ...heads(), more }
      if (queue.paused || queue.ready.size === 0) waits.push(waitOf(queue, now))
    }
    return { now, claims: [], buried, waits, ...heads(), more }
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.#refuseClosed()
    const now = this.#clock.now()
    const answers = items.map((item) => this.#queue(item.queue).settle(item, now))
    const touched = new Set(items.filter((_, i) => answers[i] === 'ok').map((item) => item.queue))
    for (const name of touched) this.#queue(name).trim(now)
    this.#ring([...touched])
    return answers
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.#refuseClosed()
    return items.map((item) => this.#queue(item.queue).extend(item, item.leaseMs, item.beat, this.#clock.now()))
  }

  async depth(queues: readonly string[]): Promise<{ now: number; depths: Depth[] }> {
    this.#refuseClosed()
    const now = this.#clock.now()
    return { now, depths: queues.map((name) => this.#queue(name).depth(now)) }
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseClosed()
    const withWork = () => queues.filter((name) => this.#queue(name).hasWork(this.#clock.now()))
    if (withWork().length === 0) await this.#sleep(new Set(queues), forMs, signal)
    return this.#closed ? [] : withWork()
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const waiter of this.#waiters) waiter.wake()
  }

  #refuseClosed(): void {
    if (this.#closed) throw new ClosedError('the memory store')
  }

  #queue(name: string): MemoryQueue {
    const queue = this.queues.get(name)
    if (queue === undefined) throw new UnknownQueueError(name, [...this.queues.keys()])
    return queue
  }

  #ring(names: readonly string[]): void {
    if (names.length === 0) return
    for (const waiter of this.#waiters) if (names.some((name) => waiter.queues.has(name))) waiter.wake()
  }

  /** Resolves true when one of the queues is rung, false after `forMs`, when aborted or when the store closes. */
  #sleep(queues: ReadonlySet<string>, forMs: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || forMs <= 0) return Promise.resolve(false)
    return new Promise((resolve) => {
      const done = (rung: boolean) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        this.#waiters.delete(waiter)
        resolve(rung && !this.#closed)
      }
      const over = () => done(false)
      const waiter: Waiter = { queues, wake: () => done(true) }
      // 2^31 − 1 is the longest timer there is; whoever waits longer just looks once more in between.
      const timer = setTimeout(over, Math.min(forMs, 0x7fffffff))
      signal.addEventListener('abort', over)
      this.#waiters.add(waiter)
    })
  }
}

const remedies = {
  kind: 'Give the ordered queue another name, or drain and delete the old one.',
  order: 'Use the stored order, or give the queue another name.',
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
