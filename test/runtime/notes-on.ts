/** Job notes on a store, for whoever makes executions by hand. */

import { Events } from '#src/core/events.js'
import { jsonCodec } from '#src/core/values/codec.js'
import { JobNotes } from '#src/runtime/run/job-notes.js'
import type { Store } from '#src/stores/contract/store.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

export function notesOn(store: Pick<Store, 'extend' | 'traits'> = new MemoryStore(), events = new Events()): JobNotes {
  return new JobNotes({ store, codec: jsonCodec, maxCheckpointBytes: 1_000, events, random: Math.random })
}
