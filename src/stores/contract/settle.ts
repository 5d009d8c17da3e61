/** The end of a claim, and the renewal of its lease. */

import type { Payload } from '../../core/values/codec.js'
import type { Beat, EndedRun } from './job-beat.js'

/** The name of a claim, and the only right to settle or extend it. */
export interface ClaimKey {
  readonly queue: string
  readonly id: string
  readonly fence: number
}

/**
 * The end of a claim. `run` (plain queues) says when and where the job ran, for a job whose record stays. It does not
 * change what a beat has already recorded. `hold` is made in the same step as the end; a claim that is lost holds nothing.
 *
 * `done` (ordered queues): this many payloads in hand, from the oldest, are completed, and the end is that of the others,
 * of which there is always one. For these the run was the first: they begin with attempt 1, no crashes and no error,
 * and a failure of this claim is their first.
 */
export type SettleItem = ClaimKey & { readonly hold?: Hold } & (
    | {
        readonly kind: 'complete'
        /** Absent: nothing is kept. Without a payload: the store keeps that the job completed with no value. */
        readonly result?: KeptResult
        readonly run?: EndedRun
      }
    /**
     * A counted failure. `last`: no attempts are left, so the job is buried with `reason`. In an ordered queue only the
     * oldest payload is buried; the rest begins anew.
     */
    | {
        readonly kind: 'retry'
        readonly delayMs: number
        readonly last?: boolean
        readonly error?: string
        readonly reason?: string
        readonly done?: number
        readonly run?: EndedRun
      }
    /**
     * Not counted; due again after `delayMs`, with no crashes. With 0 the job returns to its old place, and keeps its
     * crashes and stays suspect if it was.
     * `error`: the cause, kept with the job like that of a failure; absent: the last error stays.
     */
    | {
        readonly kind: 'release'
        readonly delayMs: number
        readonly error?: string
        readonly done?: number
      }
    | {
        readonly kind: 'bury'
        readonly error?: string
        readonly reason?: string
        readonly done?: number
        readonly run?: EndedRun
      }
    /**
     * Not counted; the job waits for a signal, at most `withinMs`. `contract/steps` says what becomes of it. It is suspect
     * no more, and its crashes are forgotten.
     */
    | { readonly kind: 'wait'; readonly signal: string; readonly withinMs?: number }
    /** If the cancellation was requested with a reason, that reason stays. */
    | { readonly kind: 'cancel'; readonly reason?: string; readonly run?: EndedRun }
  )

/** A result: for the record of its job, and for the joins of which this is a member. */
export interface KeptResult {
  readonly payload?: Payload
  readonly codec?: string
  readonly keepMs?: number
  /** The record of the job keeps nothing. */
  readonly onlyForJoins?: true
}

/**
 * Grants nothing of the queue, or of the job's group in it, for `forMs`. A longer hold stays. A job without a group
 * holds the whole queue. If the store cannot change all shards in one step, it holds the others before the claim ends:
 * a call that fails may have held some of them, and sending it again holds all and ends the claim.
 */
export interface Hold {
  readonly of: 'queue' | 'group'
  readonly forMs: number
}

export type SettleAnswer = 'ok' | 'lost' | 'gone'

export type ExtendItem = ClaimKey & { readonly leaseMs: number; readonly beat?: Beat }

export type ExtendAnswer = 'ok' | 'lost' | 'cancel'
