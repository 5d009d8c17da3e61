/**
 * The receiver of a queue: its short and long polls. What a long poll brings is kept for the next claim. Messages that are not
 * to be run now are dealt with here: duplicates are dropped, those before their time sent on, those that nobody can run buried.
 */

import type { Clock } from '../../../core/platform/clock.js'
import type { Buried } from '../../contract/claim.js'
import type { SqsApi } from '../client/sqs-api.js'
import { longestDelayS, longestPollS, mostEntries } from '../client/sqs-api.js'
import { envelopeText } from '../messages/envelope.js'
import type { SqsQueue } from '../queues/sqs-queue.js'
import { arrivalOf, systemAttributes } from './arrival.js'
import { type AskedQueue, unasked } from './empty-queue.js'
import type { HeldMessages, ReceivedMessage } from './held-messages.js'

interface ReceiverParts {
  readonly queue: SqsQueue
  readonly api: SqsApi
  readonly held: HeldMessages
  readonly clock: Clock
}

/** What a long poll has brought waits so long for a claim; then it is put back. It is hidden for so much longer than its lease. */
const longestKeptMs = 5_000

export class Receiver {
  readonly #parts: ReceiverParts
  #kept: ReceivedMessage[] = []
  #asked: AskedQueue = unasked
  #polling: Promise<void> | undefined
  #putBackTimer: NodeJS.Timeout | undefined
  #buried: Buried[] = []
  /** Of the last claim, by which a poll goes. */
  #leaseMs = 30_000
  #limit = 1

  constructor(parts: ReceiverParts) {
    this.#parts = parts
  }

  get asked(): AskedQueue {
    return this.#asked
  }

  /** Whether a claim would be granted something without a call. */
  get hasKept(): boolean {
    return this.#kept.length > 0
  }

  /** Something may have come into the queue. */
  heard(): void {
    this.#asked = unasked
  }

  /** Messages that were buried since this was last asked. */
  takeBuried(): Buried[] {
    return this.#buried.splice(0)
  }

  /** Takes up to `limit` messages that are here already. */
  takeKept(limit: number, leaseMs: number): ReceivedMessage[] {
    this.#leaseMs = leaseMs
    this.#limit = Math.min(limit, mostEntries)
    const taken = this.#kept.splice(0, limit)
    if (this.#kept.length === 0) this.#forgetTimer()
    return taken
  }

  /** Takes up to `limit` messages, at most ten, by one call that does not wait. */
  async take(limit: number, leaseMs: number): Promise<ReceivedMessage[]> {
    this.#leaseMs = leaseMs
    this.#limit = Math.min(limit, mostEntries)
    return this.#receive(this.#limit, 0, leaseMs)
  }

  /** Keeps what is there now for the next claim. */
  async look(): Promise<void> {
    this.keep(await this.#receive(this.#limit, 0, this.#leaseMs + longestKeptMs))
  }

  /** Keeps messages for the next claim. */
  keep(messages: readonly ReceivedMessage[]): void {
    this.#kept.push(...messages)
    if (this.#kept.length > 0) this.#putBackTimer ??= setTimeout(() => this.putBack(), longestKeptMs)
  }

  /** Polls for up to 20 s and keeps what comes. One poll at a time: who comes meanwhile shares it. */
  poll(signal: AbortSignal): Promise<void> {
    this.#polling ??= this.#receive(this.#limit, longestPollS, this.#leaseMs + longestKeptMs, signal)
      .then((messages) => this.keep(messages))
      .finally(() => {
        this.#polling = undefined
      })
    return this.#polling
  }

  /** Makes what no claim has taken visible to others. Never rejects: what fails is visible when its time is over. */
  putBack(): Promise<void> {
    this.#forgetTimer()
    const { queue, held } = this.#parts
    const kept = this.#kept.splice(0)
    for (const message of kept) held.forget(message, false)
    const puts = kept.map(({ receipt }) => queue.visibilities.add({ ReceiptHandle: receipt, VisibilityTimeout: 0 }))
    return Promise.allSettled(puts).then(() => {})
  }

  #forgetTimer(): void {
    clearTimeout(this.#putBackTimer)
    this.#putBackTimer = undefined
  }

  async #receive(limit: number, waitS: number, hiddenMs: number, signal?: AbortSignal): Promise<ReceivedMessage[]> {
    const { api, queue, clock } = this.#parts
    const hiddenS = Math.ceil(hiddenMs / 1_000)
    const receivedAt = clock.mono()
    const input = {
      QueueUrl: queue.url,
      MaxNumberOfMessages: limit,
      VisibilityTimeout: hiddenS,
      WaitTimeSeconds: waitS,
      MessageSystemAttributeNames: systemAttributes,
      MessageAttributeNames: [],
    }
    const { Messages = [] } = await api.call('ReceiveMessage', input, signal)
    this.#asked = { askedAt: clock.mono(), empties: Messages.length > 0 ? 0 : this.#asked.empties + 1 }
    // During a long poll they were hidden when they came, and not when it began.
    const hiddenUntil = (waitS > 0 ? clock.mono() : receivedAt) + hiddenS * 1_000
    const messages: ReceivedMessage[] = []
    const others: Promise<unknown>[] = []
    for (const message of Messages) {
      const arrival = arrivalOf(message, clock.now(), { receivedAt, hiddenUntil })
      if (this.#isDuplicate(arrival.message)) continue
      if (arrival.kind === 'job') {
        this.#parts.held.arrived(arrival.message)
        messages.push(arrival.message)
      } else if (arrival.kind === 'early') others.push(this.#sendOn(arrival.message, arrival.dueInMs))
      else others.push(this.#bury(arrival.message, arrival.body, arrival.problem))
    }
    // What fails stays in the queue, and comes back.
    await Promise.allSettled(others)
    return messages
  }

  /** A message is delivered twice now and then. One that is still here is not handed out again, and one that has ended is deleted. */
  #isDuplicate({ messageId, receipt, receivedAt, hiddenUntil }: ReceivedMessage): boolean {
    const { held, queue } = this.#parts
    const before = held.here(messageId)
    // Who held it before has given it up, and not said so.
    if (before !== undefined && before.hiddenUntil <= receivedAt) held.forget(before, false)
    else if (before !== undefined) {
      Object.assign(before, { receipt, receivedAt, hiddenUntil: Math.max(hiddenUntil, before.hiddenUntil) })
      return true
    }
    if (!held.hasEnded(messageId)) return false
    void queue.deletes.add({ ReceiptHandle: receipt }).catch(() => {})
    return true
  }

  /** Sent first and deleted after: between the two it is there twice, and never not at all. */
  async #sendOn({ receipt, envelope, id, createdAt }: ReceivedMessage, dueInMs: number): Promise<void> {
    const { queue } = this.#parts
    await queue.send({
      MessageBody: envelopeText({ ...envelope, id, createdAt }),
      DelaySeconds: Math.min(longestDelayS, Math.ceil(dueInMs / 1_000)),
    })
    await queue.deletes.add({ ReceiptHandle: receipt })
  }

  async #bury(message: ReceivedMessage, body: string, problem: string): Promise<void> {
    const { queue, held } = this.#parts
    const { receipt, id } = message
    const text = (value: string) => ({ DataType: 'String' as const, StringValue: value })
    // As it came: only who sent it can tell what it was.
    await queue.sendDead({
      MessageBody: body,
      MessageAttributes: { reason: text('bad-payload'), error: text(problem) },
    })
    held.forget(message, true)
    await queue.deletes.add({ ReceiptHandle: receipt })
    this.#buried.push({ queue: queue.name, id, task: '', reason: 'bad-payload' })
  }
}
