/** The traits of the Redis store. They are known before a store is opened and before its code is loaded. */

import type { StoreTraits } from '../contract/store.js'
import { fullTraits } from '../rules/full-traits.js'

/** A hundred years: numbers of that size, added to the current time, are still stored exactly. */
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
