/** Job notes on a store, for whoever makes executions by hand. */

import { Events } from '#src/core/events.js'
import { JobUpdates } from '#src/runtime/run/job-updates.js'
import type { Store } from '#src/stores/contract/store.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { givenSurroundings } from './given-surroundings.js'

export function notesOn(
  store: Pick<Store, 'extend' | 'traits' | 'records'> = new MemoryStore(),
  events = new Events(),
): JobUpdates {
  return new JobUpdates(givenSurroundings({ events }), store, 1_000)
}
