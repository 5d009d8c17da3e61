/** The messages between the lease keeper and its beats, in the same loop or over a port to the lease thread. */

import type { MessagePort } from 'node:worker_threads'
import type { JobRef } from '../../core/events.js'
import type { Progress } from '../../core/job/job.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { LeaseTerms } from '../run/execution.js'

/** How often the keeper writes and the beats look for due leases: twice in a third of the shortest lease, 3 s. */
export const tickMs = 500

/** Leases of one queue, claimed together and numbered from `first` to `last`. */
export interface LeaseBatch extends Numbers {
  readonly leaseMs: number
  /** The time before the claim, or the beat that last renewed it, was sent. */
  readonly sentAt: number
  /** They are let go when the loop is blocked for this long. */
  readonly maxBlockMs: number
  /** They are not given up while the store is away. */
  readonly isPatient?: true
  readonly queue: string
  /**
   * The job ids of all leases, joined by NUL. Thousands a second are copied to the thread, and one text copies best;
   * most are forgotten before it must be split.
   */
  readonly ids: string
  readonly fences: OneOrEach<number>
  readonly tasks: OneOrEach<string>
}

/** One value for all leases of a batch, or one for each. */
type OneOrEach<Value> = Value | readonly Value[]

/** Leases with consecutive numbers. */
export interface Numbers {
  readonly first: number
  readonly last: number
}

/**
 * The keeper's news since its last letter, with all instants on its clock. A part without news is left out: thousands of
 * letters are copied to the thread.
 */
export interface Letter {
  /** When it was written: a sign that the loop turns. */
  readonly at: number
  readonly kept?: readonly LeaseBatch[]
  /** The leases whose handlers began, and when. */
  readonly begun?: readonly (readonly [number: number, at: number])[]
  readonly progress?: readonly (readonly [number: number, progress: Progress])[]
  readonly forgotten?: readonly Numbers[]
  /** Renewals by the keeper's own beats, for a thread that has the leases already and is not up yet. */
  readonly renewed?: readonly Renewal[]
}

/** `aheadMs`: how far the shared clock was ahead of the keeper's when the letter was sent. */
export interface SentLetter {
  readonly letter: Letter
  readonly aheadMs: number
}

/** The leases that a beat has renewed, which was sent at this time. */
interface Renewal {
  readonly leases: readonly number[]
  readonly sentAt: number
}

/** A report to the keeper on its leases, by number, or on its loop. */
export type Report =
  | ({ readonly kind: 'renewed'; readonly answeredAt: number } & Renewal)
  | { readonly kind: 'lost'; readonly leases: readonly number[] }
  | { readonly kind: 'cancelled'; readonly leases: readonly number[] }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'blocked'; readonly forMs: number; readonly jobs: readonly JobRef[]; readonly givenUp: boolean }

/** `'up'`: the thread runs and its store has answered. */
export type ThreadReport = Report | { readonly kind: 'up' }

/** The first message to the thread. */
export interface Hello {
  readonly kind: 'hello'
  /** The port of the letters. The thread reads it at its own time; a letter does not wake the thread. */
  readonly letters: MessagePort
  /**
   * Shared: the number of the lease whose handler began last, and when it began on the keeper's clock. That handler is
   * the first suspect once the loop is blocked.
   */
  readonly latestBegun: Float64Array
  /** Shared: 1 once the thread is up, so that the keeper knows it after a block, before it hears the report. */
  readonly up: Int32Array
  /** How far the shared clock is ahead of the keeper's. */
  readonly aheadMs: number
  readonly host: string
  readonly pid: number
  readonly blockedTo: number | undefined
}

export type Order = Hello | { readonly kind: 'wake' } | { readonly kind: 'stop' }

/**
 * Milliseconds on a clock that all threads of this process share; `performance.now()` counts from the start of each
 * thread.
 */
export function sharedMono(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1_000 + nanoseconds / 1_000_000
}

/** A batch of leases for these jobs of one queue. */
export function leaseBatch(
  jobs: readonly { readonly claim: Claim }[],
  first: number,
  { leaseMs, sentAt, maxBlockMs, isPatient = false }: LeaseTerms,
): LeaseBatch {
  return {
    first,
    last: first + jobs.length - 1,
    leaseMs,
    sentAt,
    maxBlockMs,
    ...(isPatient ? { isPatient } : {}),
    queue: jobs[0]!.claim.queue,
    ids: jobs.map(({ claim }) => claim.id).join('\0'),
    fences: oneOrEach(jobs, ({ claim }) => claim.fence),
    tasks: oneOrEach(jobs, ({ claim }) => claim.task),
  }
}

/** The claims of a batch, in the order of their numbers. */
export function claimsOf({ queue, ids, fences, tasks }: LeaseBatch): Pick<Claim, 'queue' | 'id' | 'fence' | 'task'>[] {
  return ids.split('\0').map((id, i) => ({ queue, id, fence: atOf(fences, i), task: atOf(tasks, i) }))
}

function oneOrEach<Item, Value>(items: readonly Item[], of: (item: Item) => Value): OneOrEach<Value> {
  const one = of(items[0]!)
  return items.every((item) => of(item) === one) ? one : items.map(of)
}

function atOf<Value extends string | number>(values: OneOrEach<Value>, i: number): Value {
  return typeof values === 'object' ? values[i]! : values
}
