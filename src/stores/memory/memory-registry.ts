/** The memory store's registry of workers. */

import type { Clock } from '../../core/clock.js'
import type { WorkerRecord, WorkerRegistry } from '../store.js'

export function memoryRegistry(clock: Clock): WorkerRegistry {
  const workers = new Map<string, { worker: WorkerRecord; seenAt: number; until: number }>()
  return {
    async beat(worker, ttlMs) {
      const seenAt = clock.now()
      workers.set(worker.id, { worker, seenAt, until: seenAt + ttlMs })
    },
    async remove(id) {
      workers.delete(id)
    },
    async list() {
      const now = clock.now()
      for (const [id, { until }] of workers) if (until <= now) workers.delete(id)
      return [...workers.values()]
        .map(({ worker, seenAt }) => ({ ...worker, seenAt }))
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    },
  }
}
