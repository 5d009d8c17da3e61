/** The room for a claim on a queue: how many jobs of it may be claimed now. Pure. */

import type { Queue } from '../../core/queue/queue.js'

/** What a worker has in hand and is worth having, counted in executions: of an ordered queue these are batches. */
export interface InHand {
  /** Slots that nothing in hand will take; below zero where more waits than there are slots. */
  readonly free: number
  readonly backlog: number
  /** What is worth claiming before there is a slot for it. */
  readonly ahead: number
  /** A claim is to have room for so many where what is in hand lasts until then. */
  readonly worthwhile: number
  /** Jobs that would join a batch that waits for more. */
  readonly lacking: number
  /** Executions that one slot may take to run one after the other. */
  readonly inARow: number
}

/**
 * At most `most`; none where a claim is not worth its trip. `batchSize`: jobs that one execution takes. Where the queue is
 * limited, what is claimed is to start at once.
 */
export function roomFor(
  { renewLease, ordered, exclusive }: Queue,
  isLimited: boolean,
  { free, backlog, ahead, worthwhile, inARow, lacking }: InHand,
  batchSize: number,
  most: number,
): number {
  // A shard gives one batch at a time, and has nothing for whoever comes before that has ended.
  if (ordered && exclusive === 'shard') return free > 0 ? Math.min(most, batchSize) : 0
  if (isLimited) return Math.min(most, Math.max(0, free) * batchSize + lacking)
  // One claim for one slot, which runs all of it: at most what begins soon, for other workers may be idle.
  if (!renewLease) return free > 0 ? Math.min(most, inARow * batchSize) : 0
  // Not for every job that begins: a claim has to be worth its trip, or its price.
  const isWorthIt = free > 0 || (worthwhile > 0 ? free + ahead >= worthwhile : backlog <= ahead / 2)
  return Math.min(most, (isWorthIt ? Math.max(0, free + ahead) * batchSize : 0) + lacking)
}
