/** The liveness of a worker: whether its process lives, as far as this process can see. */

import type { SeenWorker } from '../../stores/contract/worker-registry.js'
import { type ProcessIdentity, processIdentity } from './process-identity.js'
import { isDead, isNeighbour } from './process-peers.js'

/**
 * `unknown`: a process of another machine or container, which has reported lately. `silent`: one that has not, so that
 * it is probably gone; the registry forgets it some time later.
 */
export type Liveness = 'alive' | 'dead' | 'silent' | 'unknown'

/** An idle worker on a server reports every 20 s. */
const silentAfterMs = 30_000

export function livenessOf(worker: SeenWorker, here: ProcessIdentity = processIdentity()): Liveness {
  if (!isNeighbour(worker, here)) return worker.silentMs > silentAfterMs ? 'silent' : 'unknown'
  return isDead(worker) ? 'dead' : 'alive'
}

/** The workers that may take jobs, and those of other machines that have fallen silent; the dead are in neither. */
export interface Attendance {
  readonly serving: readonly SeenWorker[]
  readonly silent: readonly SeenWorker[]
}

export function attendanceOf(workers: readonly SeenWorker[]): Attendance {
  const here = processIdentity()
  const seen = workers.map((worker) => [livenessOf(worker, here), worker] as const)
  const those = (are: (liveness: Liveness) => boolean) =>
    seen.flatMap(([state, worker]) => (are(state) ? [worker] : []))
  return {
    serving: those((state) => state === 'alive' || state === 'unknown'),
    silent: those((state) => state === 'silent'),
  }
}
