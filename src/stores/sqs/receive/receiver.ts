/**
 * The receiver of a queue: its short and long polls. What they bring is kept until it is claimed. Messages that are not to be run
 * now are dealt with here: duplicates are dropped, those before their time sent on, those that nobody can run buried.
 */

import type { Clock } from '../../../core/platform/clock.js'
import type { Buried } from '../../contract/claim.js'
import type { SqsApi } from '../client/sqs-api.js'
import { longestPollS, mostEntries } from '../client/sqs-api.js'
import { envelopeText } from '../messages/envelope.js'
import { sendEntry } from '../messages/send-entry.js'
import type { SqsQueue } from '../queues/sqs-queue.js'
import { arrivalOf, systemAttributes } from './arrival.js'
import { type AskedQueue, unasked } from './empty-queue.js'
import { type HeldMessages, hiddenUntil, type MessageClaim, type ReceivedMessage } from './held-messages.js'
import { KeptMessages } from './kept-messages.js'

interface ReceiverParts {
  readonly queue: SqsQueue
  readonly api: SqsApi
  readonly held: HeldMessages
  readonly clock: Clock
}

/** What nobody claims is put back after so long; what is kept is hidden for so much longer than a lease. */
const longestKeptMs = 5_000
/** A message of a FIFO queue that comes before its time is hidden for at most so long at a time. */
const longestHiddenAtOnceMs = 11 * 3_600_000

export class Receiver {
  readonly queue: SqsQueue
  readonly #parts: ReceiverParts
  readonly #kept: KeptMessages
  #asked: AskedQueue = unasked
  #polling: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #buried: Buried[] = []
  /** Of the last claim, by which a poll goes. */
  #leaseMs = 30_000
  #limit = 1

  constructor(parts: ReceiverParts) {
    this.queue = parts.queue
    this.#parts = parts
    this.#kept = new KeptMessages(parts.queue.isOrdered)
  }

  get asked(): AskedQueue {
    return this.#asked
  }

  /** Whether a claim would be granted something without a call. */
  get hasFree(): boolean {
    return this.#kept.hasFree
  }

  get isPolling(): boolean {
    return this.#polling !== undefined
  }

  /** Something may have come into the queue. */
  heard(): void {
    this.#asked = unasked
  }

  /** Messages that were buried since this was last asked. */
  takeBuried(): Buried[] {
    return this.#buried.splice(0)
  }

  /** The messages of up to `limit` claims that are here already, hidden for the whole lease from `since` on, on the monotonic clock. */
  async takeFree(limit: number, leaseMs: number, since: number): Promise<ReceivedMessage[][]> {
    this.#leaseMs = leaseMs
    this.#limit = Math.min(limit, mostEntries)
    const claims = this.#kept.take(limit)
    if (this.#kept.size === 0) this.#forgetTimer()
    const short = claims.filter((messages) => messages.some(({ hiddenUntil }) => hiddenUntil < since + leaseMs))
    const lost = await Promise.all(short.map((messages) => this.#hide(messages, leaseMs)))
    return claims.filter((claim) => !short.some((one, i) => one === claim && !lost[i]))
  }

  /** Asks for messages of up to `limit` claims, at most ten, by a call that does not wait. */
  async ask(limit: number, leaseMs: number): Promise<void> {
    this.#leaseMs = leaseMs
    this.#limit = Math.min(limit, mostEntries)
    this.#arrived(await this.#receive(this.#limit, 0, leaseMs))
  }

  /** Keeps what is there now for the next claim. */
  async look(): Promise<void> {
    this.#arrived(await this.#receive(this.#limit, 0, this.#leaseMs + longestKeptMs))
  }

  /** Keeps messages that were taken for the next claim. */
  keep(messages: readonly ReceivedMessage[]): void {
    this.#kept.add(messages, this.#parts.clock.mono())
    this.#watch()
  }

  #arrived(messages: readonly ReceivedMessage[]): void {
    this.#kept.arrived(messages, this.#parts.clock.mono())
    this.#watch()
  }

  #watch(): void {
    if (this.#kept.size > 0) this.#timer ??= setTimeout(() => this.#tidy(), longestKeptMs)
  }

  /** Polls for up to 20 s and keeps what comes. One poll at a time: who comes meanwhile shares it. */
  poll(signal: AbortSignal): Promise<void> {
    this.#polling ??= this.#receive(this.#limit, longestPollS, this.#leaseMs + longestKeptMs, signal)
      .then((messages) => this.#arrived(messages))
      .finally(() => {
        this.#polling = undefined
      })
    return this.#polling
  }

  /** Of a FIFO queue: a message of the lane is in hand. */
  begin(claim: MessageClaim): void {
    const { lane } = claim.messages[0]!
    if (lane !== undefined) this.#kept.begin(lane, { fence: claim.fence, hiddenUntil: () => hiddenUntil(claim) })
  }

  /** It is over. `isDone`: the next of the lane has its turn; else it goes back, and they behind it. */
  end({ fence, messages }: MessageClaim, isDone: boolean): void {
    const { lane } = messages[0]!
    if (lane !== undefined && this.#kept.end(lane, fence) && !isDone) void this.#putBack(this.#kept.takeLane(lane))
  }

  /** Makes what no claim has taken visible to others. Never rejects: what fails is visible when its time is over. */
  close(): Promise<void> {
    this.#forgetTimer()
    return this.#putBack(this.#kept.takeAll())
  }

  #tidy(): void {
    this.#timer = undefined
    const mono = this.#parts.clock.mono()
    void this.#putBack(this.#kept.takeStale(mono - longestKeptMs, mono))
    const short = this.#kept.waiting.filter(({ hiddenUntil }) => hiddenUntil < mono + 2 * longestKeptMs)
    void this.#hide(short, this.#leaseMs + longestKeptMs)
    this.#watch()
  }

  #putBack(messages: readonly ReceivedMessage[]): Promise<void> {
    const { queue, held } = this.#parts
    for (const message of messages) held.left(message)
    const puts = messages.map(({ receipt }) => queue.visibilities.add({ ReceiptHandle: receipt, VisibilityTimeout: 0 }))
    return Promise.allSettled(puts).then(() => {})
  }

  /** Hides messages for so long from now on. False if one of them is lost; then all are given up. Never rejects. */
  async #hide(messages: readonly ReceivedMessage[], forMs: number): Promise<boolean> {
    const { queue, clock, held } = this.#parts
    const seconds = Math.ceil(forMs / 1_000)
    const until = clock.mono() + seconds * 1_000
    const hidden = await Promise.allSettled(
      messages.map(async (message) => {
        const entry = { ReceiptHandle: message.receipt, VisibilityTimeout: seconds }
        if ((await queue.visibilities.add(entry)) !== undefined) throw new Error('not hidden')
        message.hiddenUntil = until
      }),
    )
    const isHidden = hidden.every(({ status }) => status === 'fulfilled')
    if (!isHidden) for (const message of messages) held.left(message)
    return isHidden
  }

  #forgetTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
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
    const until = (waitS > 0 ? clock.mono() : receivedAt) + hiddenS * 1_000
    const messages: ReceivedMessage[] = []
    const others: Promise<unknown>[] = []
    for (const message of Messages) {
      const arrival = arrivalOf(message, clock.now(), { receivedAt, hiddenUntil: until }, queue.isFifo)
      if (this.#isDuplicate(arrival.message)) continue
      if (arrival.kind === 'job') {
        this.#parts.held.arrived(arrival.message)
        messages.push(arrival.message)
      } else if (arrival.kind === 'early') others.push(this.#sendOn(arrival.message, arrival.dueInMs))
      else others.push(this.#bury(arrival.message, arrival.body, arrival.problem))
    }
    // What fails stays in the queue, and comes back.
    await Promise.allSettled(others)
    await this.#hideNext(messages, hiddenMs)
    return messages
  }

  /** In a FIFO queue those of a lane behind the first have their turn later, and are hidden for longer. */
  async #hideNext(messages: readonly ReceivedMessage[], hiddenMs: number): Promise<void> {
    if (!this.queue.isFifo || this.queue.isOrdered) return
    const lanes = new Set<string | undefined>()
    const next = messages.filter(({ lane }) => {
      const isFirst = !lanes.has(lane)
      lanes.add(lane)
      return !isFirst
    })
    if (next.length > 0) await this.#hide(next, hiddenMs + longestKeptMs)
  }

  /** A message is delivered twice now and then. One that is still here is not handed out again, and one that has ended is deleted. */
  #isDuplicate({ messageId, receipt, receivedAt, hiddenUntil }: ReceivedMessage): boolean {
    const { held, queue } = this.#parts
    const before = held.here(messageId)
    // Who held it before has given it up, and not said so.
    if (before !== undefined && before.hiddenUntil <= receivedAt) held.left(before)
    else if (before !== undefined) {
      Object.assign(before, { receipt, receivedAt, hiddenUntil: Math.max(hiddenUntil, before.hiddenUntil) })
      return true
    }
    if (!held.hasEnded(messageId)) return false
    void queue.deletes.add({ ReceiptHandle: receipt }).catch(() => {})
    return true
  }

  /**
   * Sent first and deleted after: between the two it is there twice, and never not at all. In a FIFO queue it is hidden until
   * its time, and its lane waits.
   */
  async #sendOn(message: ReceivedMessage, dueInMs: number): Promise<void> {
    const { queue } = this.#parts
    const { receipt, envelope, id, createdAt, messageId } = message
    if (queue.isFifo) {
      await this.#hide([message], Math.min(dueInMs, longestHiddenAtOnceMs))
      return
    }
    const body = envelopeText({ ...envelope, id, createdAt })
    await queue.send(sendEntry({ body, delayMs: dueInMs, lane: envelope.group, sendId: messageId }, false))
    await queue.deletes.add({ ReceiptHandle: receipt })
  }

  async #bury(message: ReceivedMessage, body: string, problem: string): Promise<void> {
    const { queue, held } = this.#parts
    const { receipt, id, messageId, lane } = message
    const text = (value: string) => ({ DataType: 'String' as const, StringValue: value })
    // As it came: only who sent it can tell what it was.
    await queue.sendDead({
      ...sendEntry({ body, lane, sendId: messageId }, queue.isFifo),
      MessageAttributes: { reason: text('bad-payload'), error: text(problem) },
    })
    held.ended(message)
    await queue.deletes.add({ ReceiptHandle: receipt })
    this.#buried.push({ queue: queue.name, id, task: '', reason: 'bad-payload' })
  }
}
