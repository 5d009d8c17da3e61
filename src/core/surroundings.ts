/** The surroundings: the events, the clock, the randomness and the packing that all parts of a mill share. */

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

/** The surroundings that all parts of one worker share. */
export interface WorkerSurroundings extends Surroundings {
  /** The id of the worker. */
  readonly worker: string
}
