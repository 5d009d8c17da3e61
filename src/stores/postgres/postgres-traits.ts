/** The traits of the Postgres store, known before one is opened, and before its code is loaded. */

import type { StoreTraits } from '../contract/store.js'
import { fullTraits } from '../rules/full-traits.js'

/** A hundred years: instants so far away still fit into the numbers of the database, in µs. */
const maxDelayMs = 100 * 365 * 86_400_000

export const postgresTraits: StoreTraits = {
  ...fullTraits,
  name: 'postgres',
  shared: true,
  replicated: false,
  remote: true,
  // What one claim took is settled by one call: a commit waits for the disk once.
  maxBatch: fullTraits.maxClaim,
  maxDelayMs,
  maxLeaseMs: maxDelayMs,
  beatsFromThread: true,
}
