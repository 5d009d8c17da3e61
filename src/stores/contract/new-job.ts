/** A new job: what an enqueue brings, and what becomes of it. */

import type { Payload } from '../../core/values/codec.js'

export interface EnqueueCall {
  /** Unique to this call, the same when it is sent again. */
  readonly callId: string
  /** It may have been sent before: only then a store need look whether it remembers it. */
  readonly isResent?: boolean
  readonly queue: string
  readonly jobs: readonly NewJob[]
}

export interface NewJob {
  readonly id: string
  readonly task: string
  readonly payload: Payload
  /** The codec that made `payload` and `meta`; absent: `json`. */
  readonly codec?: string
  readonly meta?: Payload
  /** 0 in an ordered queue. */
  readonly priority: number
  /** The lane it waits in, and what limits by group count it by. The one of the first payload of an id is the job's. */
  readonly group?: string
  /**
   * Ordered queues only: where the payload stands among those of its id; finite. Absent: the stamp with which it
   * arrives, in ms with the µs as a fraction, or just more than the last that was given in the shard. So it strictly grows,
   * though the clock steps back, and over a reshard or a move.
   */
  readonly score?: number
  /** Due so long from now; at most one of this and `runAt`. Neither: ready at once. */
  readonly delayMs?: number
  /**
   * Due at this absolute instant. One in the past is ready at once, behind all that is ready: a client's clock that is slow
   * gives nobody precedence. In an ordered queue such a job takes the place that its instant gives it.
   */
  readonly runAt?: number
  /**
   * Plain queues only, and longer than `delayMs`: a job that no claim has taken for so long is ended as cancelled, with the reason
   * `expired`. Once taken it does not expire any more, whatever becomes of that claim.
   */
  readonly expiresMs?: number
  /**
   * Plain queues only: a waiting job of this id is replaced by this one, as if it came in now, but for its `createdAt`. One that
   * runs, is dead or is remembered is left alone (`'duplicate'`).
   */
  readonly ifWaiting?: 'replace'
  /** How long the id is remembered after the job ended; above 0 where the user gave the id. 0 in an ordered queue, which remembers none. */
  readonly rememberMs: number
}

/**
 * `'duplicate'`: a job with this id waits, runs or is dead in this queue, or is remembered; nothing changed.
 * A completed job whose result is still kept but whose id is no longer remembered is replaced.
 * `'replaced'`: by `ifWaiting`; that needs no room in a bounded queue.
 * `'merged'`, in an ordered queue only: the id waits or runs, and the payload joined its others.
 */
export type Enqueued = 'added' | 'merged' | 'replaced' | 'duplicate' | 'full' | 'draining'
