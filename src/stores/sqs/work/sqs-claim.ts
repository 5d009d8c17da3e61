/** A claim on SQS: the first queue in the given order that has messages grants them. */

import type { Clock } from '../../../core/platform/clock.js'
import type { Claim, Claimed, Claimer, ClaimFrom } from '../../contract/claim.js'
import type { ScoredPayload } from '../../contract/new-job.js'
import { type ClaimLoad, isLoaded, mostClaimBytes } from '../../rules/claim-weight.js'
import { mostEntries } from '../client/sqs-api.js'
import type { WorthAsking } from '../receive/empty-queue.js'
import type { HeldMessages, MessageClaim, ReceivedMessage } from '../receive/held-messages.js'
import type { Receiver } from '../receive/receiver.js'
import type { SqsQueue } from '../sqs-queue.js'

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
      const held = this.#held.claim(queue, messages, now)
      for (const claim of held) receiver.begin(claim)
      claims = held.map((claim) => claimOf(claim, receiver.queue))
      more = receiver.hasFree || messages.flat().length >= Math.min(most, mostEntries)
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

  /** The messages of each claim. */
  async #take(receiver: Receiver, limit: number, leaseMs: number): Promise<ReceivedMessage[][]> {
    const mono = this.#clock.mono()
    const free = await receiver.takeFree(limit, leaseMs, mono)
    if (free.length > 0) return free
    if (!this.#isWorthAsking(receiver.asked, mono - this.#grantedAt, mono)) return []
    await receiver.ask(limit, leaseMs)
    const claims = await receiver.takeFree(limit, leaseMs, mono)
    // Messages that would make the claim too heavy are kept for the next.
    const load: ClaimLoad = { bytes: 0, most: mostClaimBytes }
    const fitting = claims.filter((messages) => {
      const fits = !isLoaded(load)
      for (const { bytes } of messages) load.bytes += bytes
      return fits
    })
    receiver.keep(claims.slice(fitting.length).flat())
    return fitting
  }
}

function claimOf({ id, fence, messages }: MessageClaim, { name: queue, isOrdered }: SqsQueue): Claim {
  const [{ envelope, attempt, createdAt, runAt }] = messages as [ReceivedMessage]
  const { task, payload, codec, meta, group, error } = envelope
  const header = { queue, id, task, priority: 0, attempt, crashes: 0, fence, createdAt, runAt }
  if (isOrdered) return { ...header, payload: '', payloads: messages.map(scoredPayload) }
  return {
    ...header,
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
    ...(group === undefined ? {} : { group }),
    ...(error === undefined ? {} : { error }),
  }
}

/** Its score is its place among those of its id: they are handed over in the order in which they were sent. */
function scoredPayload(
  { envelope: { payload, codec, meta }, createdAt }: ReceivedMessage,
  place: number,
): ScoredPayload {
  return {
    score: createdAt + place / 1_000,
    payload,
    ...(codec === undefined ? {} : { codec }),
    ...(meta === undefined ? {} : { meta }),
  }
}
