/** The messages that this handle holds: which of them a claim names, until when each is hidden, and which have ended. */

import type { Envelope } from '../messages/envelope.js'

/** A message that was received, and is hidden from others. */
export interface ReceivedMessage {
  readonly messageId: string
  /** Of its latest delivery. */
  receipt: string
  readonly id: string
  readonly envelope: Envelope
  readonly attempt: number
  readonly createdAt: number
  readonly runAt: number
  readonly bytes: number
  /** On the monotonic clock, from before the call that received it. */
  receivedAt: number
  /** On the monotonic clock: it is hidden at least until then. */
  hiddenUntil: number
}

export interface HeldMessage extends ReceivedMessage {
  readonly queue: string
  readonly fence: number
  /** A copy of it has been sent, and it is only to be deleted. */
  isSentOn?: true
}

/** So many messages that have ended are remembered: one that is delivered again is deleted, and not run again. */
const mostEnded = 10_000
/** Fewer held messages are not looked through for those that nobody holds any more. */
const leastSwept = 1_000

export class HeldMessages {
  readonly #byFence = new Map<number, HeldMessage>()
  readonly #byMessage = new Map<string, ReceivedMessage>()
  readonly #counts = new Map<string, number>()
  readonly #ended = new Set<string>()
  #lastFence = 0
  #mostHeld = leastSwept

  /** The messages of a queue that claims hold. */
  count(queue: string): number {
    return this.#counts.get(queue) ?? 0
  }

  /** Holds messages that were received, each under a fence of its own. They grow with time, and so from process to process too. */
  hold(
    queue: string,
    messages: readonly ReceivedMessage[],
    { now, mono }: { now: number; mono: number },
  ): HeldMessage[] {
    if (this.#byFence.size > this.#mostHeld) this.#forgetLost(mono)
    return messages.map((message) => {
      this.#lastFence = Math.max(this.#lastFence + 1, now * 1_000)
      const held: HeldMessage = Object.assign(message, { queue, fence: this.#lastFence })
      this.#byFence.set(held.fence, held)
      this.#counts.set(queue, this.count(queue) + 1)
      return held
    })
  }

  get(queue: string, fence: number): HeldMessage | undefined {
    const held = this.#byFence.get(fence)
    return held?.queue === queue ? held : undefined
  }

  /** Notes that a message is here, be it claimed or not. */
  arrived(message: ReceivedMessage): void {
    this.#byMessage.set(message.messageId, message)
  }

  /** The same message, which was delivered before and is still here. */
  here(messageId: string): ReceivedMessage | undefined {
    return this.#byMessage.get(messageId)
  }

  /** The message is given back: it may be delivered again before that is answered, and is then another. */
  left(message: ReceivedMessage): void {
    if (this.#byMessage.get(message.messageId) === message) this.#byMessage.delete(message.messageId)
  }

  hasEnded(messageId: string): boolean {
    return this.#ended.has(messageId)
  }

  /** The message is no longer here. `hasEnded`: and never to run again. */
  forget(message: ReceivedMessage, hasEnded: boolean): void {
    this.left(message)
    const { queue, fence } = message as Partial<HeldMessage>
    if (queue !== undefined && fence !== undefined && this.#byFence.delete(fence))
      this.#counts.set(queue, this.count(queue) - 1)
    if (!hasEnded) return
    this.#ended.add(message.messageId)
    for (const oldest of this.#ended) {
      if (this.#ended.size <= mostEnded) break
      this.#ended.delete(oldest)
    }
  }

  /** Claims that were given up without a settle are here until then. */
  #forgetLost(mono: number): void {
    for (const held of this.#byFence.values()) if (held.hiddenUntil <= mono) this.forget(held, false)
    this.#mostHeld = Math.max(leastSwept, 2 * this.#byFence.size)
  }
}
