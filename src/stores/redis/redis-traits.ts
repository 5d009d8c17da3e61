/** What the Redis store can do: known before one is opened, or its code loaded. */

import type { StoreTraits } from '../contract/store.js'
import { fullTraits } from '../rules/full-traits.js'

/** A hundred years: what a store of numbers holds exactly on top of now. */
const maxDelayMs = 100 * 365 * 86_400_000

export const redisTraits: StoreTraits = {
  ...fullTraits,
  name: 'redis',
  shared: true,
  replicated: true,
  remote: true,
  maxDelayMs,
  maxLeaseMs: maxDelayMs,
  beatsFromThread: true,
}
