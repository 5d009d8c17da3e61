/** A worker row: a worker in the API, with whether its process lives, and the jobs that it holds. */

import type { ProcessIdentity } from '../../runtime/process/process-identity.js'
import { livenessOf } from '../../runtime/process/process-peers.js'
import type { HeldClaim, SeenWorker } from '../../stores/contract/worker-registry.js'

/** `here`: the process that looks. */
export function workerRow(worker: SeenWorker, here: ProcessIdentity) {
  const { startedAt, seenAt, silentMs: _, concurrency, ...rest } = worker
  return {
    ...rest,
    process: livenessOf(worker, here),
    slots: concurrency,
    startedAt: new Date(startedAt),
    seenAt: new Date(seenAt),
  }
}

/**
 * A job that a worker holds; without `startedAt` it is only reserved. `host` and `pid`: where it runs, if not in the
 * worker's process.
 */
export function heldRow({ queue, id, task, startedAt, progress, host, pid }: HeldClaim) {
  return {
    ...{ queue, id, task },
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...(progress !== undefined && { progress }),
    ...(pid !== undefined && { host, pid }),
  }
}
