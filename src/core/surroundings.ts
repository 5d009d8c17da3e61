/** The surroundings of everything that a mill starts: what it emits to, tells time by, draws from and packs with. */

import type { Events } from './events.js'
import type { Packing } from './packing/packing.js'
import type { Clock, Random } from './platform/clock.js'

export interface Surroundings {
  readonly events: Events
  readonly clock: Clock
  readonly random: Random
  readonly packing: Packing
  /** Makes ids that sort by the time when they are made. */
  readonly newId: () => string
}

/** The surroundings of what a worker starts. */
export interface WorkerSurroundings extends Surroundings {
  /** The id of the worker. */
  readonly worker: string
}
