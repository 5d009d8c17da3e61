/** The room for a claim on a queue: how many jobs may be claimed now. Pure. */

import type { Queue } from '../../core/queue/queue.js'

/** The executions that a worker holds, and those worth claiming. For ordered queues these are batches. */
export interface InHand {
  /** Free slots, less the waiting executions; negative if more wait than there are slots. */
  readonly free: number
  readonly backlog: number
  /** The executions worth claiming before there are slots for them. */
  readonly ahead: number
  /** The executions that a claim must have room for, if the present ones last until then. */
  readonly worthwhile: number
  /** Jobs that would join a waiting batch. */
  readonly lacking: number
  /** Executions that one slot may take, to run one after the other. */
  readonly inARow: number
}

/**
 * At most `most`; 0 if a claim is not worth its trip. `batchSize`: jobs per execution. If the queue is limited, claimed
 * jobs must start at once.
 */
export function roomFor(
  { renewLease, ordered, exclusive }: Queue,
  isLimited: boolean,
  { free, backlog, ahead, worthwhile, inARow, lacking }: InHand,
  batchSize: number,
  most: number,
): number {
  // A shard gives one batch at a time, and nothing more until that has ended.
  if (ordered && exclusive === 'shard') return free > 0 ? Math.min(most, batchSize) : 0
  if (isLimited) return Math.min(most, Math.max(0, free) * batchSize + lacking)
  // One claim for one slot, which runs all of it: no more than can begin soon, for other workers may be idle.
  if (!renewLease) return free > 0 ? Math.min(most, inARow * batchSize) : 0
  // Not for every job that begins: a claim must be worth its trip, or its price.
  const isWorthIt = free > 0 || (worthwhile > 0 ? free + ahead >= worthwhile : backlog <= ahead / 2)
  return Math.min(most, (isWorthIt ? Math.max(0, free + ahead) * batchSize : 0) + lacking)
}
