/** The SQS store: the verbs of the contract on queues of messages. */

import { ClosedError, hasCode } from '../../core/errors.js'
import { type Clock, systemClock } from '../../core/platform/clock.js'
import type { Claimed, Claimer, ClaimFrom } from '../contract/claim.js'
import type { Morgue } from '../contract/job-records.js'
import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { Provision } from '../contract/provision.js'
import type { QueueDepth } from '../contract/queue-depth.js'
import type { QueueSettings, StoredQueue } from '../contract/queue-settings.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../contract/settle.js'
import type { Store } from '../contract/store.js'
import type { StoreHealth } from '../contract/store-health.js'
import { noCounts } from '../rules/queue-counts.js'
import type { SqsPolling } from './client/sqs-address.js'
import type { SqsApi } from './client/sqs-api.js'
import { isWorthAsking, type WorthAsking } from './receive/empty-queue.js'
import { HeldMessages } from './receive/held-messages.js'
import { Receiver } from './receive/receiver.js'
import { SqsHealth } from './sqs-health.js'
import type { SqsQueue } from './sqs-queue.js'
import { SqsQueues } from './sqs-queues.js'
import { sqsTraits } from './sqs-traits.js'
import { SqsClaim } from './work/sqs-claim.js'
import { SqsEnqueue } from './work/sqs-enqueue.js'
import { SqsMorgue } from './work/sqs-morgue.js'
import { SqsSettle } from './work/sqs-settle.js'
import { SqsWait } from './work/sqs-wait.js'

export class SqsStore implements Store {
  readonly traits = sqsTraits
  readonly provision: Provision
  readonly health: StoreHealth
  readonly morgue: Morgue
  readonly #api: SqsApi
  readonly #clock: Clock
  readonly #queues: SqsQueues
  readonly #held = new HeldMessages()
  readonly #receivers = new Map<string, Receiver>()
  readonly #enqueue: SqsEnqueue
  readonly #claim: SqsClaim
  readonly #settle: SqsSettle
  readonly #wait: SqsWait
  #isClosed = false

  /** `worthAsking` decides whether a claim asks a queue that gave nothing before. Default: by the cost of a call. */
  constructor({
    api,
    namespace,
    polling = 'first',
    clock = systemClock,
    worthAsking = isWorthAsking,
  }: {
    readonly api: SqsApi
    readonly namespace: string
    readonly polling?: SqsPolling
    readonly clock?: Clock
    readonly worthAsking?: WorthAsking
  }) {
    this.#api = api
    this.#clock = clock
    const held = this.#held
    const queues = new SqsQueues(api, namespace, (queue) => held.count(queue))
    this.#queues = queues
    this.provision = queues
    this.health = new SqsHealth(api, queues, namespace)
    this.morgue = new SqsMorgue(api, queues, clock)
    this.#enqueue = new SqsEnqueue(queues, clock)
    this.#claim = new SqsClaim(held, clock, worthAsking)
    this.#settle = new SqsSettle(queues, held, clock, (claim, isDone) => {
      const receiver = this.#receivers.get(claim.queue)
      receiver?.end(claim, isDone)
      if (receiver?.hasFree) this.#wait.heard(claim.queue)
    })
    this.#wait = new SqsWait(polling, clock)
  }

  async open(queues: readonly QueueSettings[]): Promise<StoredQueue[]> {
    this.#refuseClosed()
    return this.#queues.open(queues)
  }

  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    this.#refuseClosed()
    const answers = await this.#enqueue.enqueue(calls)
    // A resting claimer of this process need not wait for its poll.
    for (const { queue, jobs } of calls)
      if (jobs.some(isDueNow)) {
        this.#receivers.get(queue)?.heard()
        this.#wait.heard(queue)
      }
    return answers
  }

  async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    this.#refuseClosed()
    return this.#claim.claim(from, by, await this.#receiversOf(from.map(({ queue }) => queue)))
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    this.#refuseClosed()
    return this.#settle.settle(items)
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    this.#refuseClosed()
    return this.#settle.extend(items)
  }

  async depth(queues: readonly string[]): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
    this.#refuseClosed()
    const found = await this.#queues.allOf(queues)
    const depths = await Promise.all(queues.map((name) => depthOf(this.#api, found.get(name)!)))
    return { now: this.#clock.now(), depths }
  }

  async wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    this.#refuseClosed()
    return this.#wait.forQueues(await this.#receiversOf(queues), forMs, signal)
  }

  apiCalls(): Readonly<Record<string, number>> {
    return this.#api.made()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#wait.close()
    const putBack = [...this.#receivers.values()].map((receiver) => receiver.close())
    for (const queue of this.#queues.known) queue.flush()
    await Promise.all(putBack)
    this.#api.close()
  }

  /** Throws `UnknownQueueError` for a queue that does not exist. */
  async #receiversOf(names: readonly string[]): Promise<ReadonlyMap<string, Receiver>> {
    const queues = await this.#queues.allOf(names)
    return new Map([...queues.values()].map((queue) => [queue.name, this.#receiverOf(queue)]))
  }

  #receiverOf(queue: SqsQueue): Receiver {
    let receiver = this.#receivers.get(queue.name)
    // One that was opened takes the place of one that was only found.
    if (receiver?.queue !== queue) {
      void receiver?.close()
      receiver = new Receiver(queue, this.#api, this.#held, this.#clock)
      this.#receivers.set(queue.name, receiver)
    }
    return receiver
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new ClosedError('the SQS store')
  }
}

function isDueNow({ delayMs = 0, runAt }: EnqueueCall['jobs'][number]): boolean {
  return delayMs === 0 && runAt === undefined
}

const [visible, hidden, delayed] = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const

/** The depth of a queue, as accurate as SQS reports it. */
async function depthOf(api: SqsApi, queue: SqsQueue): Promise<QueueDepth> {
  const [live, dead] = await Promise.all([
    countsOf(api, queue.url),
    queue.dead().then(
      ({ url }) => countsOf(api, url),
      (error: unknown) => {
        if (hasCode(error, 'queue-missing')) return () => 0
        throw error
      },
    ),
  ])
  const waiting = live(visible) + live(delayed)
  return {
    ...{ queue: queue.name, ...noCounts, paused: false, draining: false },
    ...{ ready: live(visible), scheduled: live(delayed), running: live(hidden) },
    ...{ dead: dead(visible) + dead(hidden), payloads: waiting, fresh: waiting },
  }
}

async function countsOf(api: SqsApi, url: string): Promise<(name: string) => number> {
  const input = { QueueUrl: url, AttributeNames: [visible, hidden, delayed] }
  const { Attributes = {} } = await api.call('GetQueueAttributes', input)
  return (name) => Number(Attributes[name] ?? 0)
}
