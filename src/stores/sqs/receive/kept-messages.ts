/**
 * Kept messages: received and not claimed yet. In a FIFO queue the messages of one lane are claimed one after the
 * other, in an ordered queue together: while one of a lane is in hand, the others of it stay here. Pure.
 */

import type { ReceivedMessage } from './held-messages.js'

interface LaneClaim {
  readonly fence: number
  /** On the monotonic clock. */
  readonly hiddenUntil: () => number
}

/** The fence of a claim whose messages are taken, but which has not begun. */
export const unbegun = 0

interface KeptMessage {
  readonly message: ReceivedMessage
  /** Since when it could be claimed, on the monotonic clock. */
  since: number
}

export class KeptMessages {
  readonly #isOrdered: boolean
  #kept: KeptMessage[] = []
  /** Lanes with a claim in hand. */
  readonly #busy = new Map<string, LaneClaim>()

  /** `isOrdered`: the messages of a lane are claimed together. */
  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered
  }

  get size(): number {
    return this.#kept.length
  }

  /**
   * Adds new messages. SQS gives none of a lane while others of it are hidden: the lane's messages here are out of
   * date. Removes and returns those.
   */
  arrived(messages: readonly ReceivedMessage[], mono: number): ReceivedMessage[] {
    const lanes = new Set(messages.flatMap(({ lane }) => (lane === undefined ? [] : [lane])))
    for (const lane of lanes) this.#busy.delete(lane)
    const former = this.#takeOut(({ message: { lane } }) => lane !== undefined && lanes.has(lane))
    this.#kept.push(...messages.map((message) => ({ message, since: mono })))
    return former
  }

  /** Puts the messages of claims that do not begin back before the others. */
  putFirst(messages: readonly ReceivedMessage[], mono: number): void {
    for (const { lane } of messages) if (lane !== undefined) this.end(lane, unbegun, mono)
    this.#kept.unshift(...messages.map((message) => ({ message, since: mono })))
  }

  /** Whether something could be claimed now. */
  get hasFree(): boolean {
    return this.#kept.some(({ message }) => this.#isFree(message))
  }

  /**
   * Removes and returns the messages for up to `limit` claims, first come first. The others of their lanes stay here until
   * the claim ends, which may be before it begins.
   */
  take(limit: number): ReceivedMessage[][] {
    const claims: ReceivedMessage[][] = []
    const byLane = new Map<string, ReceivedMessage[]>()
    this.#kept = this.#kept.filter(({ message }) => {
      const { lane } = message
      const mates = lane === undefined ? undefined : byLane.get(lane)
      if (mates !== undefined && this.#isOrdered) mates.push(message)
      else if (mates !== undefined || claims.length >= limit || !this.#isFree(message)) return true
      else {
        const claim = [message]
        claims.push(claim)
        if (lane === undefined) return false
        byLane.set(lane, claim)
        this.begin(lane, { fence: unbegun, hiddenUntil: () => Number.POSITIVE_INFINITY })
      }
      return false
    })
    return claims
  }

  /** A claim of the lane is in hand. */
  begin(lane: string, claim: LaneClaim): void {
    this.#busy.set(lane, claim)
  }

  /** The claim is over, and the next message of the lane has its turn. False if another has taken its place. */
  end(lane: string, fence: number, mono: number): boolean {
    if (this.#busy.get(lane)?.fence !== fence) return false
    for (const kept of this.#kept) if (kept.message.lane === lane) kept.since = mono
    return this.#busy.delete(lane)
  }

  /** Removes and returns the messages of a lane: messages before them go back. */
  takeLane(lane: string): ReceivedMessage[] {
    return this.#takeOut(({ message }) => message.lane === lane)
  }

  /**
   * Removes and returns messages that could be claimed since before `since`, and those behind a claim that has ended unseen.
   */
  takeStale(since: number, mono: number): ReceivedMessage[] {
    const broken = new Set([...this.#busy].filter(([, claim]) => claim.hiddenUntil() <= mono).map(([lane]) => lane))
    for (const lane of broken) this.#busy.delete(lane)
    return this.#takeOut((kept) => {
      const { lane } = kept.message
      if (lane !== undefined && broken.has(lane)) return true
      return kept.since <= since && this.#isFree(kept.message)
    })
  }

  /** Removes a message. False if it is not here. */
  drop(message: ReceivedMessage): boolean {
    return this.#takeOut((kept) => kept.message === message).length > 0
  }

  /** Removes and returns all. */
  takeAll(): ReceivedMessage[] {
    return this.#takeOut(() => true)
  }

  /** The messages that wait behind a claim in hand. */
  get waiting(): ReceivedMessage[] {
    return this.#kept.map(({ message }) => message).filter((message) => !this.#isFree(message))
  }

  #isFree({ lane }: ReceivedMessage): boolean {
    return lane === undefined || !this.#busy.has(lane)
  }

  #takeOut(isOut: (kept: KeptMessage) => boolean): ReceivedMessage[] {
    const out = this.#kept.filter(isOut)
    this.#kept = this.#kept.filter((kept) => !out.includes(kept))
    return out.map(({ message }) => message)
  }
}
