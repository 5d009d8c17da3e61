/** A job counter: hears what a history counts, where to build an event for it would cost every job more than the count. */

export interface JobCounter {
  /** `jobs`: how many, by default 1; a payload that was merged is one too. */
  enqueued(queue: string, jobs?: number): void
  /** An attempt has begun. */
  started(queue: string): void
  /** `runMs`: how long the attempt ran. */
  completed(queue: string, runMs: number): void
  failed(queue: string, runMs: number): void
  buried(queue: string): void
  crashed(queue: string): void
  cancelled(queue: string): void
}
