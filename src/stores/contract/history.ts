/**
 * The history: the facet of a store that counts the outcomes of a queue's jobs, by minute for a week and by hour for a
 * year.
 */

/** The length of a history point. */
export type HistoryStep = 'minute' | 'hour'

/** Counts of what happened to the jobs of one queue. */
export interface HistoryCounts {
  /** Jobs added, and payloads merged into a job. */
  readonly enqueued: number
  /** Attempts that began. */
  readonly started: number
  readonly completed: number
  /** Failed attempts, including a job's last. A failure that buries its job at once counts in `dead` only. */
  readonly failed: number
  /** Jobs that went to the morgue. */
  readonly dead: number
  /** Leases that expired unsettled. */
  readonly crashed: number
  /** Cancelled jobs, including expired ones. */
  readonly cancelled: number
  /** Total run time of the attempts that completed or failed. */
  readonly runMs: number
  /**
   * Those attempts by run time: for each bound of `runTimeBoundsMs` (`rules/history-slots`) how many ran at most that
   * long; the last number counts the longer ones.
   */
  readonly runTimes: readonly number[]
}

/** Measurements of a queue at one moment. */
export interface HistoryGauges {
  /** As in `QueueDepth`. */
  readonly lagMs: number
  /** Ready jobs. */
  readonly waiting: number
  readonly running: number
}

/** Counts that one process took for one queue within a minute. */
export interface HistoryEntry {
  readonly queue: string
  /** Ms between the counting and this call. The store's clock turns it into a minute. */
  readonly agoMs: number
  readonly counts: HistoryCounts
  readonly gauges?: HistoryGauges
}

/** A minute or an hour of one queue in which something was counted. */
export interface HistoryPoint extends HistoryCounts {
  /** Its start: a whole minute or hour since 1970. */
  readonly at: number
  /** The latest gauges written; absent if nobody measured. */
  readonly gauges?: HistoryGauges
}

export interface HistorySpan {
  readonly step: HistoryStep
  /**
   * Both are instants of the store's clock. The span includes a point that begins at or after `fromAt` and before
   * `toAt`.
   */
  readonly fromAt: number
  readonly toAt: number
}

export interface History {
  /**
   * Adds counts to the minute and the hour in which they were taken; gauges replace the stored ones. The queue need not
   * be known. Entries older than the store keeps are left out.
   *
   * Each entry is atomic. Unlike every other call, a call that is sent again counts again: after
   * `StoreUnavailableError` a few counts too many are better than a gap.
   */
  add(entries: readonly HistoryEntry[]): Promise<void>
  /**
   * The points of each queue, oldest first, in the order of `queues`; none for a queue without points. A queue that was
   * cleared, or is no longer declared, keeps its points. The store keeps minutes for a week and hours for 366 days.
   */
  read(queues: readonly string[], span: HistorySpan): Promise<HistoryPoint[][]>
}
