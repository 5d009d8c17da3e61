/** Admin parts: the store, tasks and clock for the administration of queues. */

import type { Packing } from '../../core/packing/packing.js'
import type { Clock } from '../../core/platform/clock.js'
import type { Registry } from '../../core/registry.js'
import type { Store } from '../../stores/contract/store.js'

/** @internal */
export interface AdminParts {
  readonly connect: () => Promise<Store>
  /**
   * Connects without opening a queue, so that a queue whose declaration is refused can be examined. Default: `connect`.
   */
  readonly look?: () => Promise<Store>
  readonly packing: Packing
  /** The known tasks, whose rules hold for its jobs. */
  readonly registry?: Registry
  /** Ends the feeds. */
  readonly closing?: AbortSignal
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'now'>
}
