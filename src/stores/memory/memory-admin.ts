/** The parts of a memory store that its facets receive. Asking for queues rejects on a closed store. */

import type { EnqueueCall, Enqueued } from '../contract/new-job.js'
import type { MemoryQueues } from './memory-queues.js'

export interface MemoryAdmin {
  queues(): MemoryQueues
  now(): number
  /** Wakes a waiter for the queue; nobody if it is paused. */
  ring(queue: string): void
  /** Wakes all watchers of jobs. */
  tellEnds(): void
  /** The ends of members in this step are reported when it is over. */
  gatherEnds<T>(step: () => T): T
  enqueue(call: EnqueueCall): Enqueued[]
  /** Wakes all watchers of schedules. */
  tellSchedules(): void
  /** Resolves with true when schedules change, with undefined after `forMs` or when aborted. */
  nextSchedule(forMs: number, signal: AbortSignal): Promise<true | undefined>
  /** Resolves with true when jobs end, with undefined after `forMs` or when aborted. */
  nextEnd(forMs: number, signal: AbortSignal): Promise<true | undefined>
}
