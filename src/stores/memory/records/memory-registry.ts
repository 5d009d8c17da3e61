/** The memory store's registry of workers, with the claims that they hold. */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { HeldClaim, WorkerRecord, WorkerRegistry, WorkerSignal } from '../../contract/worker-registry.js'
import type { MemoryAdmin } from '../memory-admin.js'
import { heldClaim } from '../queue/memory-job.js'
import { type Crashes, crash } from '../work/memory-claim.js'
import { isClaimed } from '../work/memory-settle.js'

export interface MemoryWorker {
  readonly worker: WorkerRecord
  readonly seenAt: number
  readonly until: number
  readonly signal?: WorkerSignal
}

export function memoryRegistry(store: MemoryAdmin, workers: () => Map<string, MemoryWorker>): WorkerRegistry {
  return {
    async beat(worker, ttlMs) {
      const seenAt = store.now()
      const known = workers().get(worker.id)
      const signal = known === undefined || known.until <= seenAt ? undefined : known.signal
      workers().set(worker.id, { worker, seenAt, until: seenAt + ttlMs, ...(signal && { signal }) })
      return signal
    },
    async signal(id, signal) {
      const known = workers().get(id)
      if (known === undefined || known.until <= store.now()) return false
      workers().set(id, { ...known, signal })
      return true
    },
    async remove(id) {
      workers().delete(id)
      endLeads(store, id)
    },
    async list() {
      const now = store.now()
      for (const [id, known] of workers()) {
        // The clock was set back: the record lasts from now on as long as it was to last from then on.
        const byMs = known.seenAt > now + toleratedStepMs ? known.seenAt - now : 0
        workers().set(id, { ...known, seenAt: known.seenAt - byMs, until: known.until - byMs })
        if (known.until - byMs <= now) workers().delete(id)
      }
      return [...workers().values()]
        .map(({ worker, seenAt }) => ({ ...worker, seenAt, silentMs: now - seenAt }))
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    },
    held: async (worker) => heldBy(store, worker),
    async gone(claims, worker, error) {
      const crashes = endAll(store, claims, worker, error)
      if (heldBy(store, worker).length > 0) return crashes
      workers().delete(worker)
      endLeads(store, worker)
      return crashes
    },
    async adopt(claim, from, to) {
      const job = store.queues().holding(claim.queue, claim.id).jobs.get(claim.id)
      if (job === undefined || !isClaimed(job, claim) || job.worker !== from) return false
      job.worker = to
      return true
    },
  }
}

/** A removed worker leads nothing any more. */
function endLeads(store: MemoryAdmin, worker: string): void {
  for (const queue of store.queues().all()) {
    if (queue.lead?.worker === worker) queue.lead = undefined
    if (queue.suspectLead?.worker === worker) queue.suspectLead = undefined
  }
}

/** Queue by queue, in each the oldest claim first. */
function heldBy(store: MemoryAdmin, worker: string): HeldClaim[] {
  return store
    .queues()
    .all()
    .flatMap((queue) => queue.inState('running'))
    .filter((job) => job.worker === worker)
    .map(heldClaim)
}

/** Ends those of the claims that the worker holds, as crashes. */
function endAll(store: MemoryAdmin, claims: readonly ClaimKey[], worker: string, error: string | undefined): Crashes {
  const now = store.now()
  const crashes: Crashes = { crashed: [], buried: [] }
  // Look up all before changing the first: an unknown one must change nothing.
  const queues = claims.map(({ queue, id }) => store.queues().holding(queue, id))
  const touched = new Set<(typeof queues)[number]>()
  for (const [i, claim] of claims.entries()) {
    const job = queues[i]!.jobs.get(claim.id)
    if (job === undefined || !isClaimed(job, claim) || job.worker !== worker) continue
    crash(queues[i]!, job, crashes, now, error)
    touched.add(queues[i]!)
  }
  // A worker must claim to learn that there are suspects.
  for (const { settings } of touched) store.ring(settings.name)
  if (touched.size > 0) store.tellEnds()
  return crashes
}
