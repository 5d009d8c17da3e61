/**
 * The payloads of an ordered job: how they are ordered, how they merge, and where they go when a claim ends. Every
 * store follows these rules; SQL and Lua are translations of them.
 *
 * A set holds each payload once, by its identity, in the order of score, then of arrival. A waiting job has one set. A
 * claim takes payloads in hand. Payloads that arrive for the id meanwhile, or that the claim left behind, make a second
 * set. This set waits until the claim has ended, and is no job before.
 */

// Not imported by name: an older Node would fail at the import, with an error that does not say that it is too old.
import zlib from 'node:zlib'
import type { Merge } from '../../core/queue/queue.js'
import type { NewJob, ScoredPayload } from '../contract/new-job.js'
import { mostClaimBytes, weightOf } from './claim-weight.js'

/** A payload in a set. */
export interface PayloadEntry extends ScoredPayload {
  /** See `payloadIdentity`. A payload keeps the one that it got on arrival, wherever it goes. */
  readonly identity: string
  /** Grows with every arrival in the shard: breaks ties. */
  readonly seq: number
}

/** A payload on its arrival. */
type Arriving = Pick<NewJob, 'payload' | 'codec' | 'score' | 'arrival'>

/** The enqueue call that a payload came with, and the place of its job among all jobs of the call. */
export interface CallPlace {
  readonly callId: string
  readonly place: number
}

/** The shard of an id: CRC-32 (zlib) of its UTF-8 bytes modulo the number of shards, as in Lowkiq. */
export function shardOf(id: string, shards: number): number {
  return shards === 1 ? 0 : zlib.crc32(id) % shards
}

/**
 * What two payloads have in common if they are one: this mark and their content (`payloadContent`). With `'distinct'`
 * the content is enough. Otherwise the payloads also need the same given score, or without one the same arrival: then
 * one of them was sent again.
 */
export function payloadMark(
  { score, arrival }: Pick<Arriving, 'score' | 'arrival'>,
  merge: Merge,
  { callId, place }: CallPlace,
): string {
  if (merge === 'distinct') return ''
  return score === undefined ? `a${arrival ?? `${callId} ${place}`}` : `s${score}`
}

/**
 * The same for equal payloads and for no others, after this mark. Payloads are equal if they have the same codec and the
 * same bytes; meta does not count.
 */
export function payloadContent(
  { payload, codec = 'json' }: Pick<Arriving, 'payload' | 'codec'>,
  mark = '',
): string | Uint8Array {
  if (typeof payload === 'string') return `${mark}\0${codec}\0t${payload}`
  return Buffer.concat([Buffer.from(`${mark}\0${codec}\0b`), payload])
}

/** The same for payloads that are one, and for no others. */
export function payloadIdentity(job: Arriving, merge: Merge, place: CallPlace): string {
  const content = payloadContent(job, payloadMark(job, merge, place))
  return typeof content === 'string' ? content : Buffer.from(content).toString('latin1')
}

/** The order in which payloads are handed over: old to new. */
export function byScore(a: PayloadEntry, b: PayloadEntry): number {
  return a.score - b.score || a.seq - b.seq
}

/**
 * Both sets in one. Of payloads with the same identity the first in order stays, whole: the smallest score wins, and on
 * a tie the earliest arrival. With `merge: 'latest'` only the last payload of the result is kept.
 */
export function merged(
  one: readonly PayloadEntry[],
  other: readonly PayloadEntry[],
  merge: Merge,
): readonly PayloadEntry[] {
  const kept = new Map<string, PayloadEntry>()
  for (const entry of [...one, ...other].sort(byScore)) {
    if (!kept.has(entry.identity)) kept.set(entry.identity, entry)
  }
  const all = [...kept.values()]
  return merge === 'latest' ? all.slice(-1) : all
}

/**
 * The payloads that a claim takes in hand, and those that it leaves for the next: at least one, and at most
 * `maxPayloads` that weigh at most `mostBytes` together. If `maxPayloads` is infinite it takes all, whatever they
 * weigh.
 */
export function handedOver(
  set: readonly PayloadEntry[],
  maxPayloads: number,
  mostBytes: number = mostClaimBytes,
): { readonly inHand: readonly PayloadEntry[]; readonly left: readonly PayloadEntry[] } {
  if (maxPayloads === Number.POSITIVE_INFINITY) return { inHand: set, left: [] }
  const most = Math.max(1, maxPayloads)
  let bytes = 0
  let count = 0
  for (const entry of set) {
    bytes += weightOf(entry)
    if (count > 0 && (count >= most || bytes > mostBytes)) break
    count += 1
  }
  return { inHand: set.slice(0, count), left: set.slice(count) }
}

/** How many payloads in hand leave as done before the end of their claim: never the last. */
export function doneOf(inHand: number, done = 0): number {
  return Math.min(done, inHand - 1)
}

/**
 * The end of a claim, as far as its payloads are concerned. `'exhaust'`: the last failure, or one crash too many.
 * `'return'`: a failure that is not the last, a release, a crash.
 */
export type PayloadEnd = 'complete' | 'return' | 'exhaust' | 'bury' | 'cancel'

/**
 * The payloads in hand after the end: those that go to the morgue, and those that go back and merge with the waiting
 * set. If none goes back, the waiting set becomes a new job, with times of its own; if there is no waiting set, the id
 * is gone.
 */
export function afterEnd(
  end: PayloadEnd,
  inHand: readonly PayloadEntry[],
): { readonly buried: readonly PayloadEntry[]; readonly back: readonly PayloadEntry[] } {
  switch (end) {
    case 'complete':
    case 'cancel':
      return { buried: [], back: [] }
    case 'return':
      return { buried: [], back: inHand }
    case 'exhaust':
      return { buried: inHand.slice(0, 1), back: inHand.slice(1) }
    case 'bury':
      return { buried: inHand, back: [] }
  }
}
