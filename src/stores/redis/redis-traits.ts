/** What the Redis store can do: known before one is opened, or its code loaded. */

import type { StoreTraits } from '../contract/store.js'

/** A hundred years: what a store of numbers holds exactly on top of now. */
const maxDelayMs = 100 * 365 * 86_400_000

export const redisTraits: StoreTraits = {
  name: 'redis',
  ordered: true,
  priority: true,
  groups: true,
  throttled: true,
  limited: true,
  shared: true,
  replicated: true,
  remote: true,
  maxBatch: 250,
  maxDelayMs,
  maxLeaseMs: maxDelayMs,
  maxPayloadBytes: 1_048_576,
  inOrder: true,
  exactEnqueue: true,
  fenced: true,
  tellsCrashes: true,
  rings: true,
  exactDepth: true,
  beatsFromThread: true,
}
