/** The depth of a queue: its counts. */

export interface Depth {
  readonly queue: string
  /** With the suspects. */
  readonly ready: number
  /** Waiting payloads of an ordered queue, with those that wait beside a running job; of a plain one its waiting jobs. */
  readonly payloads: number
  /** Ready jobs that only `alone` claims are given. */
  readonly suspects: number
  readonly scheduled: number
  readonly running: number
  readonly dead: number
  /** Waiting jobs (ready or scheduled) that never failed. */
  readonly fresh: number
  /** Waiting jobs that failed at least once. */
  readonly retries: number
  /** Ms since the oldest job that is due should have been started; 0 where none is due. */
  readonly lagMs: number
  /** Of an ordered queue that of each shard. */
  readonly shardLagsMs?: readonly number[]
  /** Jobs completed, failures counted, and leases that ended unsettled, since the queue exists. */
  readonly processed: number
  readonly failed: number
  readonly crashed: number
  /** Jobs cancelled because nobody began them in time (`NewJob.expiresMs`), since the queue exists. */
  readonly expired: number
  /**
   * Plain queues only: no job that was there, or has ended, after this instant was removed, by hand or by its retention.
   * Absent: none ever was.
   */
  readonly lostAt?: number
  readonly paused: boolean
  readonly draining: boolean
}
