/**
 * The weight of a claim: the bytes at which it is full, and the bytes of its jobs and their payloads. The same rules
 * for every store.
 */

import { type Payload, payloadBytes } from '../../core/values/codec.js'

/**
 * A claim is full as soon as its jobs weigh this many bytes. It takes at least one job; the others stay ready in their
 * places. Of an ordered id it takes at least one payload, and more only while all of them weigh at most this much. A
 * claim that must take all payloads of an id takes them whatever they weigh.
 */
export const mostClaimBytes = 1_048_576

/** The weight of one claim so far, and the weight at which it is full. */
export interface ClaimLoad {
  bytes: number
  readonly most: number
}

/** The bytes of a payload and its meta. A plain job weighs these and the bytes of its checkpoint. */
export function weightOf({
  payload,
  meta,
}: {
  readonly payload: Payload
  readonly meta?: Payload | undefined
}): number {
  return payloadBytes(payload) + (meta === undefined ? 0 : payloadBytes(meta))
}

export function isLoaded({ bytes, most }: ClaimLoad): boolean {
  return bytes >= most
}
