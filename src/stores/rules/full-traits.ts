/** The traits of a store that keeps every promise: each store adds its own nature and its exceptions. */

import type { StoreTraits } from '../contract/store.js'

export const fullTraits = {
  ordered: true,
  merges: true,
  fifo: false,
  priority: true,
  groups: true,
  inTurns: true,
  throttled: true,
  scheduled: true,
  limited: true,
  inOrder: true,
  exactEnqueue: true,
  expires: true,
  fields: true,
  deaths: true,
  fenced: true,
  tellsCrashes: true,
  rings: true,
  exactDepth: true,
  maxBatch: 250,
  maxClaim: 500,
  maxDelayMs: Number.MAX_SAFE_INTEGER,
  maxLeaseMs: Number.MAX_SAFE_INTEGER,
  maxHoldMs: Number.POSITIVE_INFINITY,
  metered: false,
  maxPayloadBytes: 1_048_576,
} as const satisfies Partial<StoreTraits>
