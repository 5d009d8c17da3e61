/** Claiming: the first queue of the order that has messages gives them. */

import type { Clock } from '../../../core/platform/clock.js'
import type { Claim, Claimed, Claimer, ClaimFrom } from '../../contract/claim.js'
import { type ClaimLoad, isLoaded, mostClaimBytes } from '../../rules/claim-weight.js'
import { mostEntries } from '../client/sqs-api.js'
import type { WorthAsking } from '../receive/empty-queue.js'
import type { HeldMessage, HeldMessages, ReceivedMessage } from '../receive/held-messages.js'
import type { Receiver } from '../receive/receiver.js'

export class SqsClaim {
  readonly #held: HeldMessages
  readonly #clock: Clock
  readonly #isWorthAsking: WorthAsking
  /** When a queue last gave something, on the monotonic clock. */
  #grantedAt: number

  constructor(held: HeldMessages, clock: Clock, worthAsking: WorthAsking) {
    this.#held = held
    this.#isWorthAsking = worthAsking
    this.#clock = clock
    this.#grantedAt = clock.mono()
  }

  /** `receivers`: those of all queues asked. */
  async claim(from: readonly ClaimFrom[], by: Claimer, receivers: ReadonlyMap<string, Receiver>): Promise<Claimed> {
    const clock = this.#clock
    const asked = from.map((one) => ({ ...one, receiver: receivers.get(one.queue)! }))
    let claims: Claim[] = []
    let more = false
    const waits: Claimed['waits'] = []
    for (const { queue, limit, leaseMs = by.leaseMs, receiver } of asked) {
      if (claims.length > 0 || limit === 0) continue
      const most = by.alone ? 1 : limit
      const messages = await this.#take(receiver, most, leaseMs)
      const now = { now: clock.now(), mono: clock.mono() }
      if (messages.length === 0) waits.push({ queue, reason: 'empty' })
      else this.#grantedAt = now.mono
      claims = this.#held.hold(queue, messages, now).map(claimOf)
      more = receiver.hasKept || messages.length === Math.min(most, mostEntries)
    }
    const [first] = claims
    return {
      now: clock.now(),
      ...(first === undefined ? {} : { queue: first.queue }),
      ...{ claims, crashed: [], waits, more },
      buried: [...receivers.values()].flatMap((receiver) => receiver.takeBuried()),
      ...(by.heads ? { heads: from.map(({ queue }) => ({ queue })) } : {}),
    }
  }

  async #take(receiver: Receiver, limit: number, leaseMs: number): Promise<ReceivedMessage[]> {
    const kept = receiver.takeKept(limit, leaseMs)
    if (kept.length > 0) return kept
    const mono = this.#clock.mono()
    if (!this.#isWorthAsking(receiver.asked, mono - this.#grantedAt, mono)) return []
    const messages = await receiver.take(limit, leaseMs)
    // What would make the claim too heavy is for the next.
    const load: ClaimLoad = { bytes: 0, most: mostClaimBytes }
    const fitting = messages.filter(({ bytes }) => {
      const fits = !isLoaded(load)
      load.bytes += bytes
      return fits
    })
    receiver.keep(messages.slice(fitting.length))
    return fitting
  }
}

function claimOf({ queue, id, envelope, attempt, fence, createdAt, runAt }: HeldMessage): Claim {
  const { task, payload, codec, meta, group } = envelope
  return {
    ...{ queue, id, task, payload, priority: 0, attempt, crashes: 0, fence, createdAt, runAt },
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
    ...(group === undefined ? {} : { group }),
  }
}
