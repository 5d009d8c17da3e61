/** Admin parts: what the queues of one store are administered with. */

import type { Packing } from '../../core/packing/packing.js'
import type { Clock } from '../../core/platform/clock.js'
import type { Registry } from '../../core/registry.js'
import type { Store } from '../../stores/contract/store.js'

/** @internal */
export interface AdminParts {
  readonly connect: () => Promise<Store>
  /** Connects without opening a queue, for what must be told of one whose declaration is refused. Default: `connect`. */
  readonly look?: () => Promise<Store>
  readonly packing: Packing
  /** The tasks whose rules hold for its jobs, as far as they are known. */
  readonly registry?: Registry
  /** Ends the feeds. */
  readonly closing?: AbortSignal
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'now'>
}
