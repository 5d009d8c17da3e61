/**
 * The messages that this handle holds: the messages of each claim, until when each is hidden, and the ended ones. And the
 * message in which a held job goes on.
 */

import type { SendEntry } from '../client/sqs-api.js'
import { type Envelope, envelopeForms, sendEntry } from '../envelope.js'

/** A message that was received, and is hidden from others. */
export interface ReceivedMessage {
  readonly messageId: string
  /** The receipt of its latest delivery. */
  receipt: string
  readonly id: string
  readonly envelope: Envelope
  /** FIFO queues: its message group. While one message of a lane is in hand, the next must wait. */
  readonly lane?: string
  attempt: number
  readonly createdAt: number
  readonly runAt: number
  readonly bytes: number
  /** On the monotonic clock, from before the call that received it. */
  receivedAt: number
  /** On the monotonic clock: it is hidden at least until then. */
  hiddenUntil: number
}

/** A claim: one message, or in an ordered queue the messages of one id. */
export interface MessageClaim {
  readonly queue: string
  readonly fence: number
  readonly id: string
  /** In the order of their queue; at least one. Those that are done leave. */
  messages: readonly ReceivedMessage[]
  /** How many have left. */
  done?: number
  /** A copy has been sent, and it only has to be deleted. */
  isSentOn?: true
}

/** The number of ended messages that are remembered: one that is delivered again is deleted, and not run again. */
const mostEnded = 10_000

/** The number of messages of FIFO queues whose receives without a run are remembered. */
const mostUnrun = 10_000

/** With fewer claims, lost ones are not looked for. */
const leastSwept = 1_000

export class HeldMessages {
  readonly #byFence = new Map<number, MessageClaim>()
  readonly #byMessage = new Map<string, ReceivedMessage>()
  readonly #counts = new Map<string, number>()
  readonly #ended = new Set<string>()
  readonly #unrun = new Map<string, number>()
  #lastFence = 0
  #mostHeld = leastSwept

  /** The number of held claims of a queue. */
  count(queue: string): number {
    return this.#counts.get(queue) ?? 0
  }

  /** Claims messages, each array under a fence of its own. Fences grow with time, and so also between processes. */
  claim(
    queue: string,
    messages: readonly (readonly ReceivedMessage[])[],
    { now, mono }: { now: number; mono: number },
  ): MessageClaim[] {
    if (this.#byFence.size > this.#mostHeld) this.#forgetLost(mono)
    return messages.map((some) => {
      this.#lastFence = Math.max(this.#lastFence + 1, now * 1_000)
      const claim: MessageClaim = { queue, fence: this.#lastFence, id: some[0]!.id, messages: some }
      this.#byFence.set(claim.fence, claim)
      this.#counts.set(queue, this.count(queue) + 1)
      return claim
    })
  }

  get(queue: string, fence: number): MessageClaim | undefined {
    const claim = this.#byFence.get(fence)
    return claim?.queue === queue ? claim : undefined
  }

  /** Notes that a message is here, claimed or not. */
  arrived(message: ReceivedMessage): void {
    this.#byMessage.set(message.messageId, message)
  }

  /** The same message, if it was delivered before and is still here. */
  here(messageId: string): ReceivedMessage | undefined {
    return this.#byMessage.get(messageId)
  }

  /** Whether a later delivery of the message is here, or has ended. */
  isReplaced(message: ReceivedMessage): boolean {
    const here = this.here(message.messageId)
    return here === undefined ? this.hasEnded(message.messageId) : here !== message
  }

  /** The message is given back: it may be delivered again before that call is answered, and then counts as another. */
  left(message: ReceivedMessage): void {
    if (this.#byMessage.get(message.messageId) === message) this.#byMessage.delete(message.messageId)
  }

  /** The message has been deleted, and must never run again. */
  ended(message: ReceivedMessage): void {
    this.left(message)
    this.#unrun.delete(message.messageId)
    this.#ended.add(message.messageId)
    for (const oldest of this.#ended) {
      if (this.#ended.size <= mostEnded) break
      this.#ended.delete(oldest)
    }
  }

  hasEnded(messageId: string): boolean {
    return this.#ended.has(messageId)
  }

  /** A FIFO message goes back and has not run: this receive, or so many, were no attempts. Only this handle knows. */
  notRun({ messageId }: ReceivedMessage, receives = 1): void {
    this.#unrun.set(messageId, this.unrun(messageId) + receives)
    for (const oldest of this.#unrun.keys()) {
      if (this.#unrun.size <= mostUnrun) break
      this.#unrun.delete(oldest)
    }
  }

  /** Of the receives of a FIFO message that counted so far, only the last `counted` count any longer. */
  beginsAnew(message: ReceivedMessage, counted: 0 | 1): void {
    const before = message.envelope.attempts ?? 0
    this.notRun(message, message.attempt - before - counted)
    message.attempt = before + counted
  }

  /** How many receives of the message were no attempts. */
  unrun(messageId: string): number {
    return this.#unrun.get(messageId) ?? 0
  }

  /** The claim is over, together with its remaining messages. */
  over(claim: MessageClaim): void {
    for (const message of claim.messages) this.left(message)
    if (this.#byFence.delete(claim.fence)) this.#counts.set(claim.queue, this.count(claim.queue) - 1)
  }

  /** Claims that were given up without a settle stay here until then. */
  #forgetLost(mono: number): void {
    for (const claim of this.#byFence.values()) if (hiddenUntil(claim) <= mono) this.over(claim)
    this.#mostHeld = Math.max(leastSwept, 2 * this.#byFence.size)
  }
}

/** Until when all messages of a claim are hidden, on the monotonic clock. */
export function hiddenUntil({ messages }: Pick<MessageClaim, 'messages'>): number {
  return Math.min(...messages.map((message) => message.hiddenUntil))
}

export interface Anew {
  /** Attempts before the new message: its first receive is the one after. */
  readonly attempts: number
  readonly delayMs?: number
  /** Of the wall clock; the message is sent on until then. Default: that of its envelope. */
  readonly dueAt?: number | undefined
  /** Why it waits. Default: that of its envelope. */
  readonly error?: string | undefined
}

/**
 * The same job as a message of its own, for a standard queue. SQS counts the receives of a message and lets nobody change it, so
 * a job whose receive must not count, or which comes later than a message may, goes on in another one. Send it before the message
 * itself is deleted: between the two the job exists twice, and is never missing. Of its forms the first that the queue takes is
 * sent; none loses its time or its attempts.
 */
export function messageAnew(
  { envelope, id, createdAt, messageId }: ReceivedMessage,
  { attempts, delayMs = 0, dueAt = envelope.dueAt, error = envelope.error }: Anew,
): SendEntry[] {
  const times = { createdAt, attempts, ...(dueAt === undefined ? {} : { dueAt }) }
  const added = { id, ...times, ...(error === undefined ? {} : { error }) }
  const isAsItCame = dueAt === envelope.dueAt && attempts === (envelope.attempts ?? 0)
  const bodies = envelopeForms(envelope, added, isAsItCame)
  return bodies.map((body) => sendEntry({ body, delayMs, lane: envelope.group, sendId: messageId }, false))
}
