/** The history: the facet of a store that keeps what became of the jobs of a queue, by minute for a week and by hour for a year. */

/** How long a point of a history is. */
export type HistoryStep = 'minute' | 'hour'

/** What became of the jobs of one queue, counted. */
export interface HistoryCounts {
  /** Jobs that were added, and payloads that were merged into one. */
  readonly enqueued: number
  /** Attempts that began. */
  readonly started: number
  readonly completed: number
  /** Attempts that failed, the last of a job too; one that buries its job by itself is counted in `dead` alone. */
  readonly failed: number
  /** Jobs that went to the morgue. */
  readonly dead: number
  /** Leases that ended unsettled. */
  readonly crashed: number
  /** Jobs that were cancelled, those that expired too. */
  readonly cancelled: number
  /** How long the attempts that completed or failed ran, in all. */
  readonly runMs: number
  /** Of those attempts, by `runTimeBoundsMs` (`rules/history-slots`): how many ran that long at most, and at last how many ran longer. */
  readonly runTimes: readonly number[]
}

/** How a queue stood when it was looked at. */
export interface HistoryGauges {
  /** As in `Depth`. */
  readonly lagMs: number
  /** Ready jobs. */
  readonly waiting: number
  readonly running: number
}

/** What one process counted of one queue in less than a minute. */
export interface HistoryEntry {
  readonly queue: string
  /** How long before the call that was: the store's clock says which minute it was. */
  readonly agoMs: number
  readonly counts: HistoryCounts
  readonly gauges?: HistoryGauges
}

/** A minute or an hour of one queue in which there was something to write. */
export interface HistoryPoint extends HistoryCounts {
  /** Its beginning: a whole minute or hour since 1970. */
  readonly at: number
  /** The latest that was written; absent: nobody looked. */
  readonly gauges?: HistoryGauges
}

export interface HistorySpan {
  readonly step: HistoryStep
  /** Both are instants of the store's clock; a point is told if it begins at or after `fromAt` and before `toAt`. */
  readonly fromAt: number
  readonly toAt: number
}

export interface History {
  /**
   * Adds counts to the minute and to the hour in which they were taken; gauges take the place of those that are there. The
   * queue need not be known. What is older than the store keeps is left out.
   *
   * Each entry is atomic. Unlike all else a call that is sent again is counted again: after `StoreUnavailableError`, a few
   * counts too many are better than a gap.
   */
  add(entries: readonly HistoryEntry[]): Promise<void>
  /**
   * The points of each queue, oldest first, in the order of the queues; none for a queue of which nothing is kept. A queue
   * that is cleared, or nowhere declared, keeps its points. Minutes are kept for a week, hours for 366 days.
   */
  read(queues: readonly string[], span: HistorySpan): Promise<HistoryPoint[][]>
}
