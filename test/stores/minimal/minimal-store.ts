/**
 * A minimal store: the eight verbs on a service of messages, no facet, and a trait for each promise that such a service cannot
 * keep. Made of what `millrace/store` exports, as one in a package of its own would be.
 */

import {
  type Claim,
  type Claimed,
  type Claimer,
  type ClaimFrom,
  type ClaimLoad,
  ClosedError,
  type EnqueueCall,
  type Enqueued,
  type ExtendAnswer,
  type ExtendItem,
  isLoaded,
  mostClaimBytes,
  type NewJob,
  type QueueDepth,
  type QueueSettings,
  type SettleAnswer,
  type SettleItem,
  type Store,
  type StoredQueue,
  type StoreTraits,
  UnknownQueueError,
  UnsupportedByStoreError,
  weightOf,
} from 'millrace/store'
import { MessageService, type Received } from './message-service.js'

/** How often a wait looks whether a message is visible. */
const lookMs = 10

const minimalTraits: StoreTraits = {
  name: 'minimal',
  ordered: false,
  merges: false,
  fifo: false,
  priority: false,
  groups: false,
  inTurns: false,
  throttled: false,
  scheduled: false,
  limited: false,
  shared: true,
  replicated: false,
  remote: false,
  metered: false,
  maxBatch: 10,
  maxClaim: 10,
  maxDelayMs: 900_000,
  maxLeaseMs: 43_200_000,
  maxHoldMs: 43_200_000,
  maxPayloadBytes: 1_048_576,
  inOrder: false,
  exactEnqueue: false,
  expires: false,
  fields: false,
  deaths: false,
  fenced: false,
  tellsCrashes: false,
  rings: false,
  exactDepth: false,
  beatsFromThread: false,
}

export class MinimalStore implements Store {
  readonly traits = minimalTraits
  readonly #service: MessageService
  readonly #now: () => number
  readonly #closing = new AbortController()

  constructor(service: MessageService, now: () => number) {
    this.#service = service
    this.#now = now
  }

  async open(queues: readonly QueueSettings[]): Promise<StoredQueue[]> {
    this.#refuseClosed()
    for (const { name, kind, order } of queues) {
      if (kind === 'plain' && order === 'fifo') continue
      const remedy = 'Declare it without `ordered` and `order`, or use a store that has them.'
      throw new UnsupportedByStoreError(this.traits.name, `queue '${name}', which is ${kind} and ${order}`, remedy)
    }
    return queues.map(({ name, kind, order }) => {
      this.#service.create(name)
      return { name, kind, order, exclusive: 'id', shards: 1, paused: false, draining: false, limits: {} }
    })
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    this.#refuseUnknown(calls)
    return calls.map(({ queue, jobs }) =>
      jobs.map((job) => {
        this.#service.send(queue, job, this.#delayMs(job))
        return 'added'
      }),
    )
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    this.#refuseUnknown(from)
    const claims: Claim[] = []
    let more = false
    const waits: Claimed['waits'] = []
    for (const { queue, limit, leaseMs = by.leaseMs } of from) {
      if (claims.length > 0) break
      const most = Math.min(by.alone ? 1 : limit, limit)
      const load: ClaimLoad = { bytes: 0, most: mostClaimBytes }
      while (claims.length < most && !isLoaded(load)) {
        const [message] = this.#service.receive(queue, 1, leaseMs)
        if (message === undefined) break
        load.bytes += weightOf(message.job)
        claims.push(this.#claim(queue, message))
      }
      if (claims.length === 0) waits.push({ queue, reason: 'empty' })
      more ||= this.#service.counts(queue).visible > 0
    }
    const [first] = claims
    return {
      now: this.#now(),
      ...(first === undefined ? {} : { queue: first.queue }),
      ...{ claims, crashed: [], buried: [], waits, more },
      ...(by.heads ? { heads: from.map(({ queue }) => ({ queue })) } : {}),
    }
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.#refuseUnknown(items)
    return items.map((item) => (this.#end(item) ? 'ok' : 'gone'))
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.#refuseUnknown(items)
    return items.map(({ queue, fence, leaseMs }) =>
      this.#service.hide(queue, fence, (leftMs) => Math.max(leftMs, leaseMs)) ? 'ok' : 'lost',
    )
  }

  async depth(queues: readonly string[]): Promise<{ now: number; depths: QueueDepth[] }> {
    this.#refuseUnknown(queues.map((queue) => ({ queue })))
    return { now: this.#now(), depths: queues.map((queue) => this.#depth(queue)) }
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseUnknown(queues.map((queue) => ({ queue })))
    const until = performance.now() + forMs
    for (;;) {
      const visible = queues.filter((queue) => this.#service.counts(queue).visible > 0)
      if (visible.length > 0 || performance.now() >= until || signal.aborted) return signal.aborted ? [] : visible
      await new Promise((resolve) => setTimeout(resolve, lookMs))
      this.#refuseClosed()
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  #claim(queue: string, { job, sentAt, receives, receipt }: Received): Claim {
    const { id, task, payload, codec, meta } = job
    return {
      ...{ queue, id, task, payload, priority: 0, attempt: receives, crashes: 0, fence: receipt },
      ...{ createdAt: sentAt, runAt: sentAt + this.#delayMs(job, sentAt) },
      ...(codec === undefined ? {} : { codec }),
      ...(meta === undefined ? {} : { meta }),
    }
  }

  /** Whether the message was there. */
  #end(item: SettleItem): boolean {
    const { queue, fence } = item
    const isBuried = item.kind === 'bury' || (item.kind === 'retry' && item.last === true)
    // Into the morgue first: if nothing follows, the message is there twice, and not lost.
    if (isBuried) return this.#service.bury(queue, fence) && this.#service.delete(queue, fence)
    if (item.kind === 'retry' || item.kind === 'release') {
      const { delayMs } = item
      return this.#service.hide(queue, fence, () => delayMs)
    }
    return this.#service.delete(queue, fence)
  }

  #depth(queue: string): QueueDepth {
    const { visible, hidden, delayed, dead } = this.#service.counts(queue)
    const waiting = visible + delayed
    return {
      ...{ queue, ready: visible, scheduled: delayed, running: hidden, dead, payloads: waiting, fresh: waiting },
      ...{
        waiting: 0,
        suspects: 0,
        retries: 0,
        lagMs: 0,
        processed: 0,
        failed: 0,
        crashed: 0,
        expired: 0,
        paused: false,
        draining: false,
      },
    }
  }

  #delayMs({ delayMs = 0, runAt }: NewJob, now = this.#now()): number {
    return runAt === undefined ? delayMs : Math.max(0, runAt - now)
  }

  #refuseUnknown(asked: readonly { readonly queue: string }[]): void {
    this.#refuseClosed()
    const { names } = this.#service
    const unknown = asked.find(({ queue }) => !names.includes(queue))
    if (unknown !== undefined) throw new UnknownQueueError(unknown.queue, names)
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new ClosedError('the minimal store')
  }
}

const service = new MessageService(Date.now)

/** Another handle on the messages of this process. */
export function makeStore(): MinimalStore {
  return new MinimalStore(service, Date.now)
}
