/** What the facets of a memory store are given of it. Asking for queues refuses a store that was closed. */

import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { MemoryQueues } from './memory-queues.js'

export interface MemoryAdmin {
  queues(): MemoryQueues
  now(): number
  /** Wakes one who waits for the queue; nobody where it is paused. */
  ring(queue: string): void
  /** Wakes all who watch jobs. */
  tellEnds(): void
  enqueue(call: EnqueueCall): Enqueued[]
  /** Wakes all who watch schedules. */
  tellSchedules(): void
  /** True when schedules change, undefined after `forMs` or when aborted. */
  nextSchedule(forMs: number, signal: AbortSignal): Promise<true | undefined>
  /** True when jobs end, undefined after `forMs` or when aborted. */
  nextEnd(forMs: number, signal: AbortSignal): Promise<true | undefined>
}
