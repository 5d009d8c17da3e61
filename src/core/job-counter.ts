/**
 * A job counter: the counts for a history. It exists because building an event for each count would cost every job more
 * than the count.
 */

export interface JobCounter {
  /** `jobs`: how many, by default 1; a merged payload counts as one. */
  enqueued(queue: string, jobs?: number): void
  /** An attempt has begun. */
  started(queue: string): void
  /** `runMs`: the duration of the attempt. */
  completed(queue: string, runMs: number): void
  failed(queue: string, runMs: number): void
  buried(queue: string): void
  crashed(queue: string): void
  cancelled(queue: string): void
}
