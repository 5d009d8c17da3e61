/** The memory store's registry of workers. */

import type { Clock } from '../../core/clock.js'
import type { WorkerRecord, WorkerRegistry } from '../store.js'

export interface MemoryWorker {
  readonly worker: WorkerRecord
  readonly seenAt: number
  readonly until: number
}

export function memoryRegistry(
  clock: Clock,
  workers: Map<string, MemoryWorker>,
  refuseClosed: () => void,
): WorkerRegistry {
  return {
    async beat(worker, ttlMs) {
      refuseClosed()
      const seenAt = clock.now()
      workers.set(worker.id, { worker, seenAt, until: seenAt + ttlMs })
    },
    async remove(id) {
      refuseClosed()
      workers.delete(id)
    },
    async list() {
      refuseClosed()
      const now = clock.now()
      for (const [id, { until }] of workers) if (until <= now) workers.delete(id)
      return [...workers.values()]
        .map(({ worker, seenAt }) => ({ ...worker, seenAt }))
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    },
  }
}
