/** The liveness of a worker: whether its process lives, as far as it can be told from here. */

import type { WorkerRecord } from '../stores/contract/worker-registry.js'
import { type ProcessIdentity, processIdentity } from './process-identity.js'
import { isDead, isNeighbour } from './process-peers.js'

/** `unknown`: a process of another machine or container, which said that it lives, and is forgotten where it says so no more. */
export type Liveness = 'alive' | 'dead' | 'unknown'

export function livenessOf(worker: WorkerRecord, here: ProcessIdentity = processIdentity()): Liveness {
  if (!isNeighbour(worker, here)) return 'unknown'
  return isDead(worker) ? 'dead' : 'alive'
}

/** All but those that are dead for certain, which the registry has not forgotten yet. */
export function serving<Worker extends WorkerRecord>(workers: readonly Worker[]): Worker[] {
  const here = processIdentity()
  return workers.filter((worker) => livenessOf(worker, here) !== 'dead')
}
