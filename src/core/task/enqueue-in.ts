/** Enqueueing in a user's transaction: what is taken for one, and the options of the call. */

/** A connection to the file of a SQLite store: of `node:sqlite`, or of a package with the same two methods. */
export interface SqliteDatabase {
  prepare(text: string): unknown
  exec(text: string): unknown
}

/** The further options of a job that is enqueued in a transaction. */
export interface EnqueueInOptions {
  /** False: no idle worker is woken for the job; one finds it by a look within some seconds. Default true. */
  readonly wake?: boolean | undefined
}
