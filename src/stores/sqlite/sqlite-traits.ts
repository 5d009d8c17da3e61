/** What the SQLite store can do: known before one is opened, or its code loaded. */

import type { StoreTraits } from '../contract/store.js'

export const sqliteTraits: StoreTraits = {
  name: 'sqlite',
  ordered: true,
  priority: true,
  groups: true,
  throttled: true,
  limited: true,
  shared: true,
  replicated: false,
  remote: false,
  maxBatch: 250,
  maxDelayMs: Number.MAX_SAFE_INTEGER,
  maxLeaseMs: Number.MAX_SAFE_INTEGER,
  maxPayloadBytes: 1_048_576,
  inOrder: true,
  exactEnqueue: true,
  fenced: true,
  tellsCrashes: true,
  rings: true,
  exactDepth: true,
  beatsFromThread: true,
}
