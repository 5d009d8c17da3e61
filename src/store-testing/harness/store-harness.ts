/**
 * A store harness: a store with its clock in your hand and its insides readable. Whoever writes a store writes one of
 * these and gets the contract suite and the comparison with the memory store for it.
 */

import type { Store } from '../../stores/contract/store.js'
import type { CanonicalState } from '../state/canonical-state.js'
import type { AuditEntry } from './audit-entry.js'

/**
 * Thrown by a member of a harness that cannot be offered for its store: a service that nobody can look into has no `dump`. The
 * contract case that asks for it is skipped with the message as its reason.
 */
export class UnseenError extends Error {
  override readonly name = 'UnseenError'
}

export interface StoreHarness {
  /** The word for the store in titles and messages: `memory`, `sqlite`. */
  readonly name: string
  /**
   * Another handle on the same, at first empty, data, as another process would have it. The harness closes in `close()`
   * what the caller has not closed. A call on one handle that has resolved is seen by every other handle.
   */
  open(): Promise<Store>
  /**
   * Moves the store's clock forward by `ms`, and only this and `step` move it: between two calls of them every instant that
   * the store writes is the same. `wait` and `watch` may measure `forMs` on the real clock.
   */
  advance(ms: number): Promise<void>
  /**
   * Sets the wall clock forward or, where `ms` is below 0, back, as an administrator or NTP does. A clock of the store that
   * nobody can set goes on undisturbed. May throw `UnseenError`.
   */
  step(ms: number): Promise<void>
  /**
   * From now on the store says that it was started anew, and has forgotten nothing. Clocks go on. May throw `UnseenError`.
   */
  restart(): Promise<void>
  /** All that the store holds, as every store would say it. Reading changes nothing. May throw `UnseenError`. */
  dump(): Promise<CanonicalState>
  /** Every change of a job's state since the harness was made, in the order in which they happened. May throw `UnseenError`. */
  audit(): Promise<AuditEntry[]>
  /** Closes all handles and removes the data. Closing twice is harmless. */
  close(): Promise<void>
}

/**
 * Makes a fresh harness, with no data, whose clock stands at `startAt` (ms since 1970; `defaultStartAt` when absent).
 * `mostClaimBytes`: of how many bytes a claim of this store takes no more jobs (by default 1 MiB), so that small jobs can
 * show what large ones do.
 */
export type HarnessMaker = (options?: {
  readonly startAt?: number
  readonly mostClaimBytes?: number
}) => Promise<StoreHarness>

/** Where harness clocks start: 2024-01-01T00:00:00Z. */
export const defaultStartAt = 1_704_067_200_000
