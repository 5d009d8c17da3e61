/** What the facets of a memory store are given of it. Asking for queues refuses a store that was closed. */

import type { MemoryQueue } from './memory-queue.js'

export interface MemoryAdmin {
  /** In the order of their creation. */
  queues(): Iterable<MemoryQueue>
  queue(name: string): MemoryQueue
  now(): number
  /** Wakes one who waits for the queue; nobody where it is paused. */
  ring(queue: MemoryQueue): void
  /** Wakes all who watch jobs. */
  tellEnds(): void
  /** True when jobs end, undefined after `forMs` or when aborted. */
  nextEnd(forMs: number, signal: AbortSignal): Promise<true | undefined>
}
