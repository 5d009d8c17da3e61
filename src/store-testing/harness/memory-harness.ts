/** The harness of the memory store. */

import { MemoryData, MemoryStore } from '../../stores/memory/memory-store.js'
import type { CanonicalState } from '../state/canonical-state.js'
import { memoryState } from '../state/memory-state.js'
import type { AuditEntry } from './audit-entry.js'
import { ManualClock } from './manual-clock.js'
import { MemoryAudit } from './memory-audit.js'
import { defaultStartAt, type HarnessMaker, type StoreHarness } from './store-harness.js'

/** `isRemote`: whether it behaves like a server, which is away while it restarts. */
export async function memoryHarness(
  options: Parameters<HarnessMaker>[0] & { readonly isRemote?: boolean } = {},
): Promise<StoreHarness> {
  const clock = new ManualClock(options.startAt ?? defaultStartAt)
  const data = new MemoryData(options.isRemote, options.mostClaimBytes)
  const audit = new MemoryAudit(data, clock)
  const handles: MemoryStore[] = []
  return {
    name: 'memory',
    async open() {
      const store = new MemoryStore(clock, data)
      handles.push(store)
      return audit.watched(store)
    },
    async advance(ms) {
      clock.advance(ms)
    },
    async step(ms) {
      clock.step(ms)
    },
    async restart() {
      data.restart(clock.now())
    },
    async dump(): Promise<CanonicalState> {
      return memoryState(data, clock.now())
    },
    async audit(): Promise<AuditEntry[]> {
      return [...audit.entries]
    },
    async close() {
      for (const store of handles) await store.close()
    },
  }
}

/**
 * The memory store for a comparison with this store: as remote as it, on a clock that starts at the same instant.
 * `options`: the options with which the subject was made.
 */
export async function modelOf(subject: StoreHarness, options: Parameters<HarnessMaker>[0] = {}): Promise<StoreHarness> {
  const { traits } = await subject.open()
  return memoryHarness({ ...options, isRemote: traits.remote })
}
