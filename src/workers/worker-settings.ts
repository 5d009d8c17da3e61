/** The settings of a worker: what it serves and how, with every default filled in. */

import type { Queue } from '../core/queue/queue.js'
import type { Selector } from '../selectors/selector.js'
import type { ShardsOf } from './claims/shard-owners.js'

export interface WorkerSettings {
  readonly queues: readonly Queue[]
  readonly concurrency: number
  readonly selector: Selector
  /** `'custom'`: a function of the user's. */
  readonly selectorName: string
  /** Absent: the live workers share the shards among themselves. */
  readonly shardsOf: ShardsOf | undefined
  readonly affinity: string
  readonly graceMs: number
  readonly maxBlockMs: number
  readonly maxJobs: number | undefined
  readonly maxRssBytes: number | undefined
  /** A supervisor starts another process when this one asks to be replaced, so it need not go on with lost slots. */
  readonly isSupervised: boolean
}
