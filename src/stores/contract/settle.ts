/** The end of a claim, and the renewal of its lease. */

import type { Payload } from '../../core/values/codec.js'
import type { Beat, EndedRun } from './job-beat.js'

/** A claim by name: the only right to settle or extend it. */
export interface ClaimKey {
  readonly queue: string
  readonly id: string
  readonly fence: number
}

/**
 * How a claim ends. `run`, in a plain queue: where a record of the job is kept, it says when and where the job ran. What a beat has
 * said already stays.
 */
export type SettleItem = ClaimKey &
  (
    | {
        readonly kind: 'complete'
        /** Absent: nothing is kept. Without a payload: that it completed with no value. */
        readonly result?: { readonly payload?: Payload; readonly codec?: string; readonly keepMs?: number }
        readonly run?: EndedRun
      }
    /**
     * A counted failure. `last`: no attempts are left, bury it with `reason`; in an ordered queue its oldest payload only,
     * and what is left begins anew.
     */
    | {
        readonly kind: 'retry'
        readonly delayMs: number
        readonly last?: boolean
        readonly error?: string
        readonly reason?: string
        readonly run?: EndedRun
      }
    /**
     * Not counted; due again after `delayMs`, with 0 in its old place and, if it was suspect, still suspect. `error`: why, kept with
     * the job as that of a failure is; absent, the last one stays.
     */
    | {
        readonly kind: 'release'
        readonly delayMs: number
        readonly error?: string
        readonly hold?: Hold
      }
    | { readonly kind: 'bury'; readonly error?: string; readonly reason?: string; readonly run?: EndedRun }
    /** Where it was asked for with a reason, that one stays. */
    | { readonly kind: 'cancel'; readonly reason?: string }
  )

/**
 * Nothing of the queue, or of the job's group in it, is granted for so long; a longer hold stays. A job without a group holds
 * the whole queue. Where shards cannot be changed in one step the others are held before the claim ends: an item whose call
 * failed has held some of them or all, and sent again it holds all of them and ends.
 */
export interface Hold {
  readonly of: 'queue' | 'group'
  readonly forMs: number
}

export type SettleAnswer = 'ok' | 'lost' | 'gone'

export type ExtendItem = ClaimKey & { readonly leaseMs: number; readonly beat?: Beat }

export type ExtendAnswer = 'ok' | 'lost' | 'cancel'
