/** A wait reason: why a job has not begun, as `explain()` says it. */

/**
 * The kinds of reasons.
 *
 * Of the job itself: `'expired'` its time to begin is over · `'delayed'` it is due later · `'retry'` its next attempt is
 * due later · `'asleep'` it sleeps, by `ctx.sleep()` · `'joins'` it waits for other jobs · `'signal'` it waits for a
 * signal · `'suspect'` its worker died with it, so it waits to run alone.
 *
 * Of its queue: `'paused'` queue or group is paused · `'draining'` the queue refuses new jobs · `'resharding'` its jobs
 * move to other shards · `'held'` queue or group is held · `'throttled'` the throttle permits no start yet ·
 * `'max-running'` as many run as may run at once · `'exclusive'` another job of its shard runs.
 *
 * Of the workers: `'no-worker'` none takes jobs of the queue · `'no-task'` none of them has the task · `'slots-full'` all
 * their slots are in use · `'reserved'` one holds the job, and has not begun it.
 *
 * `'behind'` others are before it · `'next'` nothing keeps it: the next free slot takes it.
 */
export type WaitCause =
  | 'expired'
  | 'delayed'
  | 'retry'
  | 'asleep'
  | 'joins'
  | 'signal'
  | 'suspect'
  | 'paused'
  | 'draining'
  | 'resharding'
  | 'held'
  | 'throttled'
  | 'max-running'
  | 'exclusive'
  | 'no-worker'
  | 'no-task'
  | 'slots-full'
  | 'reserved'
  | 'behind'
  | 'next'

/** One reason why a job has not begun. */
export interface WaitReason {
  readonly why: WaitCause
  /** The reason in words, with what to do if a person must act. */
  readonly text: string
  /** It stays until a person or a deploy acts. */
  readonly standing?: true
  /** When it ends by itself, by the clock of this process; absent if that is not known. */
  readonly until?: Date
  /** The group that is paused, held, throttled or full; absent if it is the whole queue. */
  readonly group?: string
  /** The jobs that keep it, at most 10: those that run, or the first that it waits for. */
  readonly jobs?: readonly { readonly queue: string; readonly id: string }[]
  /** With `'behind'`: how many jobs are before it; at least this many if that is 200. */
  readonly ahead?: number
}
