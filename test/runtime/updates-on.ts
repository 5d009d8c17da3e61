/** Job notes on a store, for whoever makes executions by hand. */

import { Events } from '#src/core/events.js'
import { Packing } from '#src/core/packing/packing.js'
import { jsonCodec } from '#src/core/values/codec.js'
import { JobUpdates } from '#src/runtime/run/job-updates.js'
import type { Store } from '#src/stores/contract/store.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

export function notesOn(
  store: Pick<Store, 'extend' | 'traits' | 'records'> = new MemoryStore(),
  events = new Events(),
): JobUpdates {
  return new JobUpdates({
    store,
    packing: new Packing(jsonCodec),
    maxCheckpointBytes: 1_000,
    events,
    random: Math.random,
  })
}
