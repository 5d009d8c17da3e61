/**
 * Settling and renewing in SQS. Completed and cancelled jobs are deleted. Retried ones become visible when they are due.
 * Released ones, whose attempt must not count, are sent anew before they are deleted; dead ones to the dead-letter queue.
 */

import { InvalidArgumentError, StoreUnavailableError } from '../../../core/errors.js'
import type { Clock } from '../../../core/platform/clock.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../../contract/settle.js'
import { doneOf } from '../../rules/payloads.js'
import { type EntryFailure, longestHiddenMs, type SendEntry } from '../client/sqs-api.js'
import { type DeadLetter, envelopeForms, sendEntry } from '../envelope.js'
import {
  type HeldMessages,
  hiddenUntil,
  type MessageClaim,
  messageAnew,
  type ReceivedMessage,
} from '../receive/held-messages.js'
import { isMessageRefused, type SqsQueue } from '../sqs-queue.js'
import type { SqsQueues } from '../sqs-queues.js'

/** A message whose 12 hours end within this time is not hidden any longer, but sent anew. */
const marginMs = 60_000

/**
 * The receipt is not that of a message in flight: the message was deleted, is visible again, or was delivered again.
 */
const lostCodes = new Set(['ReceiptHandleIsInvalid', 'MessageNotInflight', 'InvalidParameterValue'])
const notInFlight: EntryFailure = { Code: 'MessageNotInflight' }

export class SqsSettle {
  readonly #queues: SqsQueues
  readonly #held: HeldMessages
  readonly #clock: Clock
  readonly #onEnd: (claim: MessageClaim, isDone: boolean) => void
  /** Claims that ended in calls of which another part failed: those calls are sent again. */
  readonly #ended = new Set<number>()

  /** `onEnd` is called with a claim that is over. `isDone`: its messages will not come again. */
  constructor(
    queues: SqsQueues,
    held: HeldMessages,
    clock: Clock,
    onEnd: (claim: MessageClaim, isDone: boolean) => void,
  ) {
    this.#queues = queues
    this.#held = held
    this.#clock = clock
    this.#onEnd = onEnd
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    const found = await this.#found(items)
    const answers = await Promise.allSettled(
      found.map(async ({ item, queue, claim }): Promise<SettleAnswer> => {
        if (this.#ended.delete(item.fence)) return 'ok'
        if (claim === undefined || claim.id !== item.id) return 'gone'
        const { failure, isDone } = await this.#end(item, queue, claim)
        const answer = answerOf(failure)
        this.#over(claim, isDone && answer === 'ok')
        return answer
      }),
    )
    if (answers.some(({ status }) => status === 'rejected'))
      for (const [i, answer] of answers.entries())
        if (answer.status === 'fulfilled' && answer.value === 'ok') this.#ended.add(items[i]!.fence)
    return valuesOf(answers)
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    const found = await this.#found(items)
    const answers = await Promise.allSettled(
      found.map(async ({ item: { id, leaseMs }, queue, claim }): Promise<ExtendAnswer> => {
        if (claim === undefined || claim.id !== id) return 'lost'
        const now = this.#clock.mono()
        // SQS may still take the receipt, and would show a message that another has.
        if (hiddenUntil(claim) <= now) return 'lost'
        if (now + leaseMs <= hiddenUntil(claim)) return 'ok'
        const mostMs = oldest(claim).receivedAt + longestHiddenMs - now
        // Reported before it ends: a lease is renewed at each third of it, and the next beat must still find it held.
        if (mostMs < leaseMs / 2) return 'lost'
        const seconds = Math.min(Math.ceil(leaseMs / 1_000), Math.floor(mostMs / 1_000))
        const failure = await hide(queue, claim.messages, seconds)
        if (failure === undefined) for (const message of claim.messages) message.hiddenUntil = now + seconds * 1_000
        return answerOf(failure)
      }),
    )
    return valuesOf(answers)
  }

  async #found<Item extends ClaimKey>(items: readonly Item[]) {
    const all = await this.#queues.allOf(items.map(({ queue }) => queue))
    return items.map((item) => ({ item, queue: all.get(item.queue)!, claim: this.#held.get(item.queue, item.fence) }))
  }

  #over(claim: MessageClaim, isDone: boolean): void {
    if (isDone) for (const message of claim.messages) this.#held.ended(message)
    this.#held.over(claim)
    this.#onEnd(claim, isDone)
  }

  async #end(item: SettleItem, queue: SqsQueue, claim: MessageClaim): Promise<Ending> {
    // Late is fine: a completed job must not run again, whoever has it now.
    if (item.kind === 'complete' || item.kind === 'cancel') return done(await remove(queue, claim.messages))
    // Nothing sends it: the store has no facet for steps.
    if (item.kind === 'wait') throw new InvalidArgumentError('a message of SQS cannot wait for a signal.')
    // Its present holder decides what becomes of it.
    if (hiddenUntil(claim) <= this.#clock.mono()) return { failure: notInFlight, isDone: false }
    const failure = item.done === undefined ? undefined : await this.#dropDone(queue, claim, item.done)
    if (failure !== undefined) return { failure, isDone: false }
    if (item.kind === 'bury' || (item.kind === 'retry' && item.last === true)) return this.#bury(item, queue, claim)
    return this.#putBack(queue, claim, item)
  }

  /** The first `done` messages are completed. A settle that is sent again does not drop others. */
  async #dropDone(queue: SqsQueue, claim: MessageClaim, done: number): Promise<EntryFailure | undefined> {
    const { done: before = 0, messages } = claim
    const count = doneOf(messages.length, done - before)
    if (count === 0) return undefined
    const failure = await remove(queue, messages.slice(0, count))
    if (failure !== undefined) return failure
    for (const message of messages.slice(0, count)) this.#held.ended(message)
    claim.messages = messages.slice(count)
    // For these the run was the first.
    for (const message of claim.messages) this.#held.beginsAnew(message, 1)
    claim.done = before + count
    return undefined
  }

  /** In an ordered queue only the oldest payload runs out of attempts; a bury takes all of them. */
  async #bury(item: DeadLetter & Pick<SettleItem, 'kind'>, queue: SqsQueue, claim: MessageClaim): Promise<Ending> {
    const count = item.kind === 'retry' ? 1 : claim.messages.length
    const dead = claim.messages.slice(0, count)
    const left = claim.messages.slice(count)
    if (!claim.isSentOn) for (const message of dead) await queue.sendDead(...deadLettersOf(message, item, queue.isFifo))
    claim.isSentOn = true
    const failure = await remove(queue, dead)
    if (left.length === 0) return done(failure)
    for (const message of dead) this.#held.ended(message)
    if (failure !== undefined) return { failure, isDone: false }
    for (const message of left) this.#held.beginsAnew(message, 0)
    for (const message of left) this.#held.left(message)
    return { failure: await hide(queue, left, 0), isDone: false }
  }

  /**
   * Hides a retry for its delay, which cannot duplicate it. It is sent anew if SQS does not hide it for that long, and if
   * it is released: SQS counts each receive. In a FIFO queue, where that would cost it its place, it is always hidden,
   * comes back sooner than after half a day, and a release counts. So does a message that has no room to say its time and
   * its attempts.
   */
  async #putBack(
    queue: SqsQueue,
    claim: MessageClaim,
    { kind, delayMs, error }: Extract<SettleItem, { readonly kind: 'retry' | 'release' }>,
  ): Promise<Ending> {
    const longestMs = oldest(claim).receivedAt + longestHiddenMs - marginMs - this.#clock.mono()
    const hideInPlace = async (): Promise<Ending> => {
      for (const message of claim.messages) this.#held.left(message)
      const seconds = Math.ceil(Math.max(0, Math.min(delayMs, longestMs)) / 1_000)
      return { failure: await hide(queue, claim.messages, seconds), isDone: false }
    }
    if (queue.isFifo || (kind === 'retry' && delayMs <= longestMs)) return hideInPlace()
    const message = oldest(claim)
    const attempts = kind === 'release' ? message.attempt - 1 : message.attempt
    const dueAt = delayMs === 0 ? undefined : this.#clock.now() + delayMs
    try {
      if (!claim.isSentOn) await queue.send(...messageAnew(message, { attempts, delayMs, dueAt, error }))
    } catch (refusal) {
      if (!isMessageRefused(refusal)) throw refusal
      return hideInPlace()
    }
    claim.isSentOn = true
    return done(await remove(queue, claim.messages))
  }
}

/** The outcome for a claim. `isDone`: none of its messages comes again. */
interface Ending {
  readonly failure: EntryFailure | undefined
  readonly isDone: boolean
}

function done(failure: EntryFailure | undefined): Ending {
  return { failure, isDone: true }
}

function oldest({ messages }: MessageClaim): ReceivedMessage {
  return messages[0]!
}

/** The first failure among them. */
async function remove(queue: SqsQueue, messages: readonly ReceivedMessage[]): Promise<EntryFailure | undefined> {
  const failures = await Promise.all(messages.map(({ receipt }) => queue.deletes.add({ ReceiptHandle: receipt })))
  return failures.find((failure) => failure !== undefined)
}

async function hide(
  queue: SqsQueue,
  messages: readonly ReceivedMessage[],
  seconds: number,
): Promise<EntryFailure | undefined> {
  const entries = messages.map(({ receipt }) => ({ ReceiptHandle: receipt, VisibilityTimeout: seconds }))
  const failures = await Promise.all(entries.map((entry) => queue.visibilities.add(entry)))
  return failures.find((failure) => failure !== undefined)
}

/** The forms of its dead letter, of which the first that the queue takes is sent. */
function deadLettersOf(message: ReceivedMessage, { reason, error }: DeadLetter, isFifo: boolean): SendEntry[] {
  const { envelope, id, createdAt, attempt, messageId, lane } = message
  const letter = { ...(reason === undefined ? {} : { reason }), ...(error === undefined ? {} : { error }) }
  const bodies = envelopeForms(envelope, { id, createdAt, attempts: attempt, ...letter })
  return bodies.map((body) => sendEntry({ body, lane, sendId: messageId }, isFifo))
}

/** Throws for a failure that may not last. */
function answerOf(failure: EntryFailure | undefined): 'ok' | 'lost' {
  if (failure === undefined) return 'ok'
  const { Code = 'no code', Message = 'no reason given' } = failure
  if (lostCodes.has(Code.replace(/^.*\./, ''))) return 'lost'
  throw new StoreUnavailableError(`SQS did not carry out a settle now (${Code}: ${Message}).`)
}

/** All answers. Throws the first error among them. */
function valuesOf<Answer>(answers: readonly PromiseSettledResult<Answer>[]): Answer[] {
  return answers.map((answer) => {
    if (answer.status === 'rejected') throw answer.reason
    return answer.value
  })
}
