/** The depth of a queue: its counts. */

export interface QueueDepth {
  readonly queue: string
  /** Includes the suspects. */
  readonly ready: number
  /** Waiting payloads of an ordered queue, including those behind a running job; of a plain queue all its jobs that wait. */
  readonly payloads: number
  /** Ready jobs that only `alone` claims receive. */
  readonly suspects: number
  readonly scheduled: number
  /** Jobs that wait for other jobs or for a signal; not among the waiting jobs of the counts below. */
  readonly waiting: number
  readonly running: number
  readonly dead: number
  /** Waiting jobs (ready or scheduled) that never failed. */
  readonly fresh: number
  /** Waiting jobs that failed at least once. */
  readonly retries: number
  /**
   * Ms since the oldest due job could begin: it was due, and waited for no other job and no signal any more; 0 if none is
   * due. Of the jobs of one priority that have waited so, at least those in the first 1,000 places count.
   */
  readonly lagMs: number
  /** Ordered queues only: the lag of each shard. */
  readonly shardLagsMs?: readonly number[]
  /** Completed jobs, counted failures and leases that expired unsettled, since the queue exists. */
  readonly processed: number
  readonly failed: number
  readonly crashed: number
  /** Jobs cancelled because nobody began them in time (`NewJob.expiresMs`), since the queue exists. */
  readonly expired: number
  /**
   * Plain queues only: no job that existed or ended after this instant was removed by hand, or from the morgue by its
   * retention. Absent: no job ever was. Results that were dropped do not count: a caller that waits for one has said so
   * (`Records.expect`).
   */
  readonly lostAt?: number
  readonly paused: boolean
  readonly draining: boolean
}
