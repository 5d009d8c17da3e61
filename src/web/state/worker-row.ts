/** A worker row: a worker as the API tells of it, with whether its process lives, and the jobs that it has in hand. */

import { livenessOf } from '../../runtime/liveness.js'
import type { ProcessIdentity } from '../../runtime/process-identity.js'
import type { HeldClaim, WorkerRecord } from '../../stores/contract/worker-registry.js'

/** `here`: the process from which it is looked at. */
export function workerRow(worker: WorkerRecord & { readonly seenAt: number }, here: ProcessIdentity) {
  const { startedAt, seenAt, concurrency, ...rest } = worker
  return {
    ...rest,
    process: livenessOf(worker, here),
    slots: concurrency,
    startedAt: new Date(startedAt),
    seenAt: new Date(seenAt),
  }
}

/** A job in a worker's hand; without `startedAt` it is reserved only. `host` and `pid`: where it runs, if that is not the worker's. */
export function heldRow({ queue, id, task, startedAt, progress, host, pid }: HeldClaim) {
  return {
    ...{ queue, id, task },
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...(progress !== undefined && { progress }),
    ...(pid !== undefined && { host, pid }),
  }
}
