/** The settings of a worker: what it is to serve and how, with every default filled in. */

import type { Queue } from '../core/queue/queue.js'
import type { Selector } from '../selectors/selector.js'
import type { ShardsOf } from './shards/shard-owners.js'

export interface WorkerSettings {
  readonly queues: readonly Queue[]
  readonly concurrency: number
  readonly selector: Selector
  /** `'custom'`: a function of the user's. */
  readonly selectorName: string
  /** Absent: shards are shared out among the workers that live. */
  readonly shardsOf: ShardsOf | undefined
  readonly graceMs: number
  readonly maxBlockMs: number
  readonly maxJobs: number | undefined
  readonly maxRssBytes: number | undefined
  /** Somebody starts another process when this one asks to be replaced: it then need not go on with slots that are lost. */
  readonly isSupervised: boolean
}
