/** A worker row: a worker as the API tells of it, with whether its process lives. */

import { livenessOf } from '../../runtime/liveness.js'
import type { ProcessIdentity } from '../../runtime/process-identity.js'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'

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
