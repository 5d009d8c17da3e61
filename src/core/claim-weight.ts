/** The weight of a claim: of how many bytes it takes no more jobs. Every store weighs by these rules. */

import { type Payload, payloadBytes } from './codec.js'

/**
 * A claim takes no more jobs once those that it has taken weigh so many bytes: it has at least one job, and the rest stays
 * ready in its place. Of one id of an ordered queue it takes no more payloads than weigh so many, but at least one, unless
 * it is to take all.
 */
export const mostClaimBytes = 1_048_576

/** What one claim has taken so far, and of how much it takes no more. */
export interface ClaimLoad {
  bytes: number
  readonly most: number
}

/** The bytes of a payload and its meta. A plain job weighs these, and those of its checkpoint. */
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
