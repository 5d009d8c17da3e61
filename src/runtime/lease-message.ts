/** What passes between the lease keeper and its beats, in the same loop or over a port to the lease thread. */

import type { MessagePort } from 'node:worker_threads'
import type { JobRef } from '../core/events.js'
import type { Progress } from '../core/job.js'

/** How often the keeper writes and the beats look what is due: twice in the third of the shortest lease, 3 s. */
export const tickMs = 500

/** Leases of one claim, numbered from `first`. Thousands a second are copied to the thread, and flat copies best. */
export interface LeaseBatch {
  readonly first: number
  readonly leaseMs: number
  /** From before the claim, or the beat that renewed it last, was sent. */
  readonly sentAt: number
  /** Per lease: queue, id, fence, task. */
  readonly jobs: readonly (string | number)[]
}

/** What the keeper has to say since it wrote last. */
export interface Letter {
  /** When it was written: a sign that the loop turns. */
  readonly at: number
  readonly maxBlockMs: number
  readonly kept: readonly LeaseBatch[]
  readonly begun: readonly number[]
  readonly progress: readonly (readonly [number: number, progress: Progress])[]
  readonly forgotten: readonly number[]
}

/** What the keeper is told of its leases, by their numbers, and of its loop. */
export type Report =
  | {
      readonly kind: 'renewed'
      readonly leases: readonly number[]
      readonly sentAt: number
      readonly answeredAt: number
    }
  | { readonly kind: 'lost'; readonly leases: readonly number[] }
  | { readonly kind: 'cancelled'; readonly leases: readonly number[] }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'blocked'; readonly forMs: number; readonly jobs: readonly JobRef[]; readonly givenUp: boolean }

/** `'up'`: the thread is there and its store has answered. */
export type ThreadReport = Report | { readonly kind: 'up' }

/** What the thread must know to begin. */
export interface Hello {
  readonly kind: 'hello'
  /** Where letters come. Reading it is the thread's own affair; nothing on it wakes the thread. */
  readonly letters: MessagePort
  /** Shared: the number of the lease whose handler began last, which is the first suspect once the loop is blocked. */
  readonly latestBegun: Float64Array
  readonly host: string
  readonly pid: number
  readonly blockedTo: number | undefined
}

export type Order = Hello | { readonly kind: 'wake' } | { readonly kind: 'stop' }

/** Milliseconds on a clock that all threads of this process share; `performance.now()` counts from the start of each. */
export function sharedMono(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1_000 + nanoseconds / 1_000_000
}
