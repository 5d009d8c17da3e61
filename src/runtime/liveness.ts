/** The liveness of a worker: whether its process lives, as far as this process can see. */

import type { WorkerRecord } from '../stores/contract/worker-registry.js'
import { type ProcessIdentity, processIdentity } from './process-identity.js'
import { isDead, isNeighbour } from './process-peers.js'

/**
 * `unknown`: a process of another machine or container. It has said that it lives, and is forgotten once it stops
 * saying so.
 */
export type Liveness = 'alive' | 'dead' | 'unknown'

export function livenessOf(worker: WorkerRecord, here: ProcessIdentity = processIdentity()): Liveness {
  if (!isNeighbour(worker, here)) return 'unknown'
  return isDead(worker) ? 'dead' : 'alive'
}

/** All workers except those known to be dead that the registry has not forgotten yet. */
export function serving<Worker extends WorkerRecord>(workers: readonly Worker[]): Worker[] {
  const here = processIdentity()
  return workers.filter((worker) => livenessOf(worker, here) !== 'dead')
}
