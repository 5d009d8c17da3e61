/**
 * A store harness: a store with a clock that you move and contents that you can read. The author of a store writes one,
 * and can then run the contract suite and the comparison with the memory store.
 */

import type { Store } from '../../stores/contract/store.js'
import type { CanonicalState } from '../state/canonical-state.js'
import type { AuditEntry } from './store-audit.js'

/**
 * Thrown by a member of a harness that its store cannot offer: a service whose contents nobody can read has no `dump`.
 * A contract case that calls the member is skipped with the message as its reason.
 */
export class UnseenError extends Error {
  override readonly name = 'UnseenError'
}

/**
 * A store that tells by the clock alone what time changes, and keeps of places only what the order of jobs needs. The comparison
 * sees both stores so.
 */
export interface ByClock {
  readonly reason: string
  /** Removes what is past its time, or beyond its number, as the store does when it comes to it. */
  forget(): Promise<void>
}

export interface StoreHarness {
  /** The name of the store in titles and messages: `memory`, `sqlite`. */
  readonly name: string
  /** Absent: the comparison sees every number, and a change that time makes when a call of the store finds it. */
  readonly byClock?: ByClock
  /**
   * Opens another handle on the same data, at first empty, as another process would. `close()` closes handles that the
   * caller has not closed. A call on one handle that has resolved is visible to every other handle.
   */
  open(): Promise<Store>
  /**
   * Moves the store's clock forward by `ms`. Only this and `step` move it: between two calls of them every instant that
   * the store writes is the same. `wait` and `watch` may measure `forMs` on the real clock.
   */
  advance(ms: number): Promise<void>
  /**
   * Sets the wall clock forward or, if `ms` is negative, back, as an administrator or NTP does. A clock of the store
   * that nobody can set goes on undisturbed. May throw `UnseenError`.
   */
  step(ms: number): Promise<void>
  /**
   * From now on the store reports that it was restarted, but has forgotten nothing. Clocks go on. May throw
   * `UnseenError`.
   */
  restart(): Promise<void>
  /**
   * Everything that the store holds, in the form that all stores share. Reading changes nothing. May throw
   * `UnseenError`.
   */
  dump(): Promise<CanonicalState>
  /** Every change of a job's state since the harness was made, in the order of the changes. May throw `UnseenError`. */
  audit(): Promise<AuditEntry[]>
  /** Closes all handles and removes the data. Closing twice is harmless. */
  close(): Promise<void>
}

/**
 * Makes a fresh harness without data, whose clock is at `startAt` (ms since 1970; `defaultStartAt` when absent).
 * `mostClaimBytes`: the bytes after which a claim of this store takes no more jobs (default 1 MiB), so that small jobs
 * can show the effect of large ones.
 */
export type HarnessMaker = (options?: {
  readonly startAt?: number
  readonly mostClaimBytes?: number
}) => Promise<StoreHarness>

/** Where harness clocks start: 2024-01-01T00:00:00Z. */
export const defaultStartAt = 1_704_067_200_000
