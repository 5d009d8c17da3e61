/**
 * The receiver of a queue: its short and long polls. It keeps received messages until they are claimed. Messages that
 * must not run now are handled here: duplicates are dropped, early ones are sent on, and those that nobody can run are
 * buried.
 */

import { hasCode, type QueueMissingError, type StoreRefusedError } from '../../../core/errors.js'
import type { Clock } from '../../../core/platform/clock.js'
import type { Buried } from '../../contract/claim.js'
import { longestPollS, mostEntries, type SqsApi } from '../client/sqs-api.js'
import { sendEntry } from '../envelope.js'
import { isMessageRefused, type SqsQueue } from '../sqs-queue.js'
import { arrivalOf, systemAttributes } from './arrival.js'
import { type AskedQueue, unasked } from './empty-queue.js'
import {
  type Anew,
  type HeldMessages,
  hiddenUntil,
  type MessageClaim,
  messageAnew,
  type ReceivedMessage,
} from './held-messages.js'
import { KeptMessages, unbegun } from './kept-messages.js'

/** Unclaimed messages are put back after this time; kept messages are hidden for a lease and this time. */
const longestKeptMs = 5_000
/**
 * The 12 hours for which SQS hides a message begin with its receive, and a time limit may take all but a quarter of an hour of
 * them, or half a lease if that is more. A message of a FIFO queue that has waited for longer than this goes back, and
 * its run begins with 12 hours; it is not less than a minute, so that one that comes with a poll runs.
 */
const longestWaitMs = (leaseMs: number) => Math.max(15 * 60_000 - leaseMs / 2, 60_000)
/** A message with less time than this is left to it: a copy might be sent when it is visible already. */
const putBackMs = 2_000
/** A message of a FIFO queue that comes before its time is hidden for at most this long at once. */
const longestHiddenAtOnceMs = 11 * 3_600_000

/** The part of a delivery that differs from other deliveries of its message. */
type Delivery = Pick<ReceivedMessage, 'messageId' | 'receipt' | 'receivedAt' | 'hiddenUntil'>

export class Receiver {
  readonly queue: SqsQueue
  readonly #api: SqsApi
  readonly #held: HeldMessages
  readonly #clock: Clock
  readonly #kept: KeptMessages
  #asked: AskedQueue = unasked
  #polling: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #buried: Buried[] = []
  /** A message could not be sent on, buried or deleted, and nor could others: the next receive says so. */
  #refused: StoreRefusedError | QueueMissingError | undefined
  /** The lease of the last claim, which polls use. */
  #leaseMs = 30_000
  #limit = 1

  constructor(queue: SqsQueue, api: SqsApi, held: HeldMessages, clock: Clock) {
    this.queue = queue
    this.#api = api
    this.#held = held
    this.#clock = clock
    this.#kept = new KeptMessages(queue.isOrdered)
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

  /** There may be a new message in the queue. */
  heard(): void {
    this.#asked = unasked
  }

  /** The messages that were buried since the last call. */
  takeBuried(): Buried[] {
    return this.#buried.splice(0)
  }

  /**
   * The messages for up to `limit` claims that are already here, hidden for the whole lease from `since` on, on the
   * monotonic clock. If those of a claim are lost, or have waited for too long, the others of their lane go back, so that
   * none overtakes them. A message whose time is over is lost: SQS may still take its receipt, but another may have
   * received it.
   */
  async takeFree(limit: number, leaseMs: number, since: number): Promise<ReceivedMessage[][]> {
    this.#leaseMs = leaseMs
    this.#limit = Math.min(limit, mostEntries)
    const claims = this.#kept.take(limit)
    if (this.#kept.size === 0) this.#forgetTimer()
    const mono = this.#clock.mono()
    const areHeld = await Promise.all(
      claims.map(async (messages) => {
        const [{ lane, receivedAt }] = messages as [ReceivedMessage]
        const until = hiddenUntil({ messages })
        if (until <= mono) return this.#lose(messages)
        if (lane !== undefined && receivedAt < mono - longestWaitMs(leaseMs)) {
          await this.#lose(messages, messages)
          // The queue is asked for them at once.
          this.heard()
          return false
        }
        if (until >= since + leaseMs) return true
        const hidden = await this.#hide(messages, leaseMs)
        // Meanwhile its time may be over, and it may come again.
        const here = hidden.filter((message) => !this.#held.isReplaced(message))
        return here.length === messages.length || this.#lose(messages, here)
      }),
    )
    return claims.filter((_, i) => areHeld[i])
  }

  /** Messages that were taken for a claim are lost, except `here`, which go back: it does not begin. */
  async #lose(messages: readonly ReceivedMessage[], here: readonly ReceivedMessage[] = []): Promise<false> {
    this.#leftUnrun(messages.filter((message) => !here.includes(message)))
    const putBack = this.#putBack(here)
    this.end({ fence: unbegun, messages }, false)
    await putBack
    return false
  }

  /** Requests messages for up to `limit` claims, at most ten, by a call that does not wait. */
  async ask(limit: number, leaseMs: number): Promise<void> {
    this.#leaseMs = leaseMs
    this.#limit = Math.min(limit, mostEntries)
    this.#arrived(await this.#receive(this.#limit, 0, leaseMs))
  }

  /** Keeps the present messages of the queue for the next claim. */
  async look(): Promise<void> {
    this.#arrived(await this.#receive(this.#limit, 0, this.#leaseMs + longestKeptMs))
  }

  /** Keeps taken messages for the next claim. */
  keep(messages: readonly ReceivedMessage[]): void {
    this.#kept.putFirst(messages, this.#clock.mono())
    this.#watch()
  }

  #arrived(messages: readonly ReceivedMessage[]): void {
    this.#leftUnrun(this.#kept.arrived(messages, this.#clock.mono()))
    this.#watch()
  }

  #watch(): void {
    if (this.#kept.size > 0) this.#timer ??= setTimeout(() => this.#tidy(), longestKeptMs)
  }

  /** Polls for up to 20 s and keeps the messages that come. One poll at a time: later callers share it. */
  poll(signal: AbortSignal): Promise<void> {
    this.#polling ??= this.#receive(this.#limit, longestPollS, this.#leaseMs + longestKeptMs, signal)
      .then((messages) => this.#arrived(messages))
      .finally(() => {
        this.#polling = undefined
      })
    return this.#polling
  }

  /** FIFO queues: a message of the lane is in hand. */
  begin(claim: MessageClaim): void {
    const { lane } = claim.messages[0]!
    if (lane !== undefined) this.#kept.begin(lane, { fence: claim.fence, hiddenUntil: () => hiddenUntil(claim) })
  }

  /**
   * The claim is over. `isDone`: the next message of the lane has its turn; otherwise the claim's messages go back, and
   * those behind them too.
   */
  end({ fence, messages }: Pick<MessageClaim, 'fence' | 'messages'>, isDone: boolean): void {
    const { lane } = messages[0]!
    if (lane !== undefined && this.#kept.end(lane, fence, this.#clock.mono()) && !isDone)
      void this.#putBack(this.#kept.takeLane(lane))
  }

  /**
   * Makes unclaimed messages visible to others. Never rejects: a message for which that fails is visible when its time
   * is over.
   */
  close(): Promise<void> {
    this.#forgetTimer()
    return this.#putBack(this.#kept.takeAll())
  }

  #tidy(): void {
    this.#timer = undefined
    const mono = this.#clock.mono()
    void this.#putBack(this.#kept.takeStale(mono - longestKeptMs, mono))
    const short = this.#kept.waiting.filter(({ hiddenUntil }) => hiddenUntil < mono + 2 * longestKeptMs)
    void this.#hide(short, this.#leaseMs + longestKeptMs)
    this.#watch()
  }

  /** In a FIFO queue, where a message must keep its place, only this handle knows that the receive was no attempt. */
  #leftUnrun(messages: readonly ReceivedMessage[]): void {
    for (const message of messages) {
      this.#held.left(message)
      if (this.queue.isFifo) this.#held.notRun(message)
    }
  }

  /**
   * That they were received here counts as no attempt. A message of a standard queue whose time is nearly over becomes visible by
   * itself, or is already, and another may have run it.
   */
  #putBack(messages: readonly ReceivedMessage[]): Promise<void> {
    const mono = this.#clock.mono()
    this.#leftUnrun(messages)
    const puts = messages.map(async (message) => {
      const { receipt, attempt, hiddenUntil } = message
      if (this.queue.isFifo) return this.queue.visibilities.add({ ReceiptHandle: receipt, VisibilityTimeout: 0 })
      if (hiddenUntil < mono + putBackMs) return undefined
      return this.#sendAnew(message, { attempts: attempt - 1 })
    })
    return this.#allDone(puts)
  }

  /** Hides messages for `forMs` from now on. Resolves with those that are; the others are given up. Never rejects. */
  async #hide(messages: readonly ReceivedMessage[], forMs: number): Promise<ReceivedMessage[]> {
    const seconds = Math.ceil(forMs / 1_000)
    const until = this.#clock.mono() + seconds * 1_000
    const failures = await Promise.allSettled(
      messages.map(({ receipt }) =>
        this.queue.visibilities.add({ ReceiptHandle: receipt, VisibilityTimeout: seconds }),
      ),
    )
    return messages.filter((message, i) => {
      const failure = failures[i]!
      const isHidden = failure.status === 'fulfilled' && failure.value === undefined
      if (isHidden) message.hiddenUntil = until
      else this.#held.left(message)
      return isHidden
    })
  }

  #forgetTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async #receive(limit: number, waitS: number, hiddenMs: number, signal?: AbortSignal): Promise<ReceivedMessage[]> {
    const refused = this.#refused
    this.#refused = undefined
    // The messages stay, or each that it sends on would be there twice.
    if (refused !== undefined) throw refused
    const hiddenS = Math.ceil(hiddenMs / 1_000)
    const receivedAt = this.#clock.mono()
    const input = {
      QueueUrl: this.queue.url,
      MaxNumberOfMessages: limit,
      VisibilityTimeout: hiddenS,
      WaitTimeSeconds: waitS,
      MessageSystemAttributeNames: systemAttributes,
      MessageAttributeNames: [],
    }
    const { Messages = [] } = await this.#api.call('ReceiveMessage', input, signal)
    const answeredAt = this.#clock.mono()
    this.#asked = { askedAt: answeredAt, empties: Messages.length > 0 ? 0 : this.#asked.empties + 1 }
    // In a long poll they were hidden when they came, and not when it began.
    const until = (waitS > 0 ? answeredAt : receivedAt) + hiddenS * 1_000
    const messages: ReceivedMessage[] = []
    const others: Promise<unknown>[] = []
    // FIFO queues: the lanes of early messages, and what came behind those.
    const waiting = new Set<string>()
    const behind: ReceivedMessage[] = []
    for (const message of Messages) {
      const { MessageId: messageId = '', ReceiptHandle: receipt = '' } = message
      const times = { receivedAt, hiddenUntil: until }
      if (this.#isDuplicate({ messageId, receipt, ...times }, answeredAt)) continue
      const arrival = arrivalOf(message, this.#clock.now(), times, this.queue.isFifo, this.#held.unrun(messageId))
      const { lane } = arrival.message
      if (lane !== undefined && waiting.has(lane)) behind.push(arrival.message)
      else if (arrival.kind === 'job') {
        this.#held.arrived(arrival.message)
        messages.push(arrival.message)
      } else if (arrival.kind === 'early') {
        if (lane !== undefined) waiting.add(lane)
        others.push(this.#sendOn(arrival.message, arrival.dueInMs))
      } else others.push(this.#bury(arrival.message, arrival.body, arrival.problem))
    }
    // A message for which this fails stays in the queue, and comes back.
    await this.#allDone([...others, this.#putBack(behind)])
    await this.#hideNext(messages, hiddenMs)
    return messages
  }

  /** Waits for all. Notes a refusal that is not about a single message. Never rejects. */
  async #allDone(calls: readonly Promise<unknown>[]): Promise<void> {
    for (const end of await Promise.allSettled(calls)) if (end.status === 'rejected') this.#note(end.reason)
  }

  #note(error: unknown): void {
    if (isMessageRefused(error)) return
    if (hasCode(error, 'store-refused') || hasCode(error, 'queue-missing')) this.#refused = error
  }

  /** In a FIFO queue the messages of a lane behind the first have their turn later, and are hidden for longer. */
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

  /**
   * SQS sometimes delivers a message twice. One that is still here is not handed out again, and one that has ended is
   * deleted. `answeredAt`: on the monotonic clock; a long poll may have begun when it was still hidden.
   */
  #isDuplicate({ messageId, receipt, receivedAt, hiddenUntil }: Delivery, answeredAt: number): boolean {
    const before = this.#held.here(messageId)
    // Its former holder has given it up without a word, or nobody has claimed it in time.
    if (before !== undefined && before.hiddenUntil <= answeredAt) {
      if (this.#kept.drop(before)) this.#leftUnrun([before])
      else this.#held.left(before)
    } else if (before !== undefined) {
      Object.assign(before, { receipt, receivedAt, hiddenUntil: Math.max(hiddenUntil, before.hiddenUntil) })
      return true
    }
    if (!this.#held.hasEnded(messageId)) return false
    void this.queue.deletes.add({ ReceiptHandle: receipt }).catch(() => {})
    return true
  }

  /** In a FIFO queue the message is hidden until its time: meanwhile SQS gives none of its lane. */
  async #sendOn(message: ReceivedMessage, dueInMs: number): Promise<void> {
    const { envelope } = message
    if (this.queue.isFifo) {
      this.#held.notRun(message)
      await this.#hide([message], Math.min(dueInMs, longestHiddenAtOnceMs))
      return
    }
    await this.#sendAnew(message, { attempts: envelope.attempts ?? 0, delayMs: dueInMs })
  }

  /**
   * The message goes on in another one, and is deleted. If it comes again meanwhile, or because that fails, it is neither run nor
   * sent again, but deleted.
   */
  async #sendAnew(message: ReceivedMessage, anew: Anew): Promise<void> {
    this.#held.arrived(message)
    try {
      await this.queue.send(...messageAnew(message, anew))
    } catch (error) {
      this.#held.left(message)
      throw error
    }
    this.#held.ended(message)
    await this.queue.deletes.add({ ReceiptHandle: message.receipt }).catch((error: unknown) => this.#note(error))
  }

  async #bury(message: ReceivedMessage, body: string, problem: string): Promise<void> {
    const { receipt, id, messageId, lane } = message
    const text = (value: string) => ({ DataType: 'String' as const, StringValue: value })
    // Unchanged: only its sender can tell what it was.
    const entry = sendEntry({ body, lane, sendId: messageId }, this.queue.isFifo)
    const MessageAttributes = { reason: text('bad-payload'), error: text(problem) }
    // One of the largest size has no room for them.
    await this.queue.sendDead({ ...entry, MessageAttributes }, entry)
    this.#held.ended(message)
    await this.queue.deletes.add({ ReceiptHandle: receipt })
    this.#buried.push({ queue: this.queue.name, id, task: '', reason: 'bad-payload' })
  }
}
