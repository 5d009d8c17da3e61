/**
 * Settling and renewing. Completed and cancelled jobs are deleted; retried and released ones become visible when they are due;
 * dead ones are sent to the dead-letter queue before they are deleted.
 */

import { StoreUnavailableError } from '../../../core/errors.js'
import type { Clock } from '../../../core/platform/clock.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../../contract/settle.js'
import type { EntryFailure, SendEntry } from '../client/sqs-api.js'
import { longestDelayS, longestHiddenMs } from '../client/sqs-api.js'
import { type DeadLetter, deadEnvelopeText, envelopeText } from '../messages/envelope.js'
import type { SqsQueue } from '../queues/sqs-queue.js'
import type { SqsQueues } from '../queues/sqs-queues.js'
import type { HeldMessage, HeldMessages } from '../receive/held-messages.js'

interface SqsSettleParts {
  readonly queues: SqsQueues
  readonly held: HeldMessages
  readonly clock: Clock
}

/** A message whose 12 hours end so soon is not hidden any longer, but sent anew. */
const marginMs = 60_000

/** The receipt is not that of a message in flight: it was deleted, or is visible again, or was delivered again. */
const lostCodes = new Set(['ReceiptHandleIsInvalid', 'MessageNotInflight', 'InvalidParameterValue'])

export class SqsSettle {
  readonly #parts: SqsSettleParts
  /** Claims that ended in calls of which others failed: those calls are sent again. */
  readonly #ended = new Set<number>()

  constructor(parts: SqsSettleParts) {
    this.#parts = parts
  }

  async settle(items: readonly SettleItem[]): Promise<SettleAnswer[]> {
    const { held } = this.#parts
    const found = await this.#found(items)
    const answers = await Promise.allSettled(
      found.map(async ({ item, queue, message }): Promise<SettleAnswer> => {
        if (this.#ended.delete(item.fence)) return 'ok'
        if (message === undefined || message.id !== item.id) return 'gone'
        const [failure, hasEnded] = await this.#end(item, queue, message)
        const answer = answerOf(failure)
        held.forget(message, hasEnded && answer === 'ok')
        return answer
      }),
    )
    if (answers.some(({ status }) => status === 'rejected'))
      for (const [i, answer] of answers.entries())
        if (answer.status === 'fulfilled' && answer.value === 'ok') this.#ended.add(items[i]!.fence)
    return valuesOf(answers)
  }

  async extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
    const { clock } = this.#parts
    const found = await this.#found(items)
    const answers = await Promise.allSettled(
      found.map(async ({ item: { id, leaseMs }, queue, message }): Promise<ExtendAnswer> => {
        if (message === undefined || message.id !== id) return 'lost'
        const now = clock.mono()
        if (now + leaseMs <= message.hiddenUntil) return 'ok'
        const mostMs = message.receivedAt + longestHiddenMs - now
        // Told before it ends: a lease is renewed at each third of it, and the next beat must still find it held.
        if (mostMs < leaseMs / 2) return 'lost'
        const seconds = Math.min(Math.ceil(leaseMs / 1_000), Math.floor(mostMs / 1_000))
        const failure = await this.#hide(queue, message, seconds)
        if (failure === undefined) message.hiddenUntil = now + seconds * 1_000
        return answerOf(failure)
      }),
    )
    return valuesOf(answers)
  }

  async #found<Item extends ClaimKey>(items: readonly Item[]) {
    const { queues, held } = this.#parts
    const all = await queues.allOf(items.map(({ queue }) => queue))
    return items.map((item) => ({ item, queue: all.get(item.queue)!, message: held.get(item.queue, item.fence) }))
  }

  /** How it failed, and whether the message is never to run again. */
  async #end(
    item: SettleItem,
    queue: SqsQueue,
    message: HeldMessage,
  ): Promise<readonly [EntryFailure | undefined, boolean]> {
    // Late is fine: a job that has completed must not run again, whoever has it now.
    if (item.kind === 'complete' || item.kind === 'cancel') return [await this.#delete(queue, message), true]
    // Whoever has it now decides what becomes of it.
    if (message.hiddenUntil <= this.#parts.clock.mono()) return [{ Code: 'MessageNotInflight' }, false]
    if (item.kind === 'bury' || (item.kind === 'retry' && item.last === true)) {
      await once(message, () => queue.sendDead(deadLetterOf(message, item)))
      return [await this.#delete(queue, message), true]
    }
    return this.#putBack(queue, message, item.delayMs)
  }

  /** By hiding it for so long, which cannot make it double; if SQS does not hide it for that long, by sending it anew. */
  async #putBack(
    queue: SqsQueue,
    message: HeldMessage,
    delayMs: number,
  ): Promise<readonly [EntryFailure | undefined, boolean]> {
    const { clock } = this.#parts
    const { receivedAt, envelope, id, createdAt, attempt } = message
    const delayS = Math.ceil(delayMs / 1_000)
    if (clock.mono() + delayMs <= receivedAt + longestHiddenMs - marginMs) {
      this.#parts.held.left(message)
      return [await this.#hide(queue, message, delayS), false]
    }
    const dueAt = clock.now() + delayMs
    const MessageBody = envelopeText({ ...envelope, id, createdAt, dueAt, attempts: attempt })
    await once(message, () => queue.send({ MessageBody, DelaySeconds: Math.min(longestDelayS, delayS) }))
    return [await this.#delete(queue, message), true]
  }

  #delete(queue: SqsQueue, { receipt }: HeldMessage): Promise<EntryFailure | undefined> {
    return queue.deletes.add({ ReceiptHandle: receipt })
  }

  #hide(queue: SqsQueue, { receipt }: HeldMessage, seconds: number): Promise<EntryFailure | undefined> {
    return queue.visibilities.add({ ReceiptHandle: receipt, VisibilityTimeout: seconds })
  }
}

function deadLetterOf({ envelope, id, createdAt, attempt }: HeldMessage, { reason, error }: DeadLetter): SendEntry {
  const letter = { ...(reason === undefined ? {} : { reason }), ...(error === undefined ? {} : { error }) }
  return { MessageBody: deadEnvelopeText({ ...envelope, id, createdAt, attempts: attempt, ...letter }) }
}

/** A settle that is sent again, as the delete behind it has failed, sends no second copy. */
async function once(message: HeldMessage, send: () => Promise<void>): Promise<void> {
  if (message.isSentOn) return
  await send()
  message.isSentOn = true
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
