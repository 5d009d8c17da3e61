/** Rings for queues that may be limited: whether there is a reason then depends on its limits, so it is looked at first. */

import { LimitedQueue } from '../limits/limited-queue.js'
import type { LimitsLook } from '../limits/limits-look.js'
import type { FunctionCaller } from '../schema/sql-function.js'
import { ringQueue } from './postgres-ring.js'

/**
 * Rings a queue in which jobs are ready, or, if `isLater`, will be. A limited one is rung if a claimer would receive a job, or if
 * nobody asks when one opens. Nobody waits for it: a lost ring is made up for by a look.
 */
export function ringFor(connection: FunctionCaller, qid: number, isLater: boolean): void {
  rung(connection, qid, isLater, false).catch(() => {})
}

/**
 * Claims of a queue or shard have ended, or its limits let more jobs start. Rings if there is room for a ready job, or for a
 * suspect, in whichever shard of the queue.
 */
export function ringFreed(connection: FunctionCaller, qid: number): void {
  rung(connection, qid, false, true).catch(() => {})
}

async function rung(
  connection: FunctionCaller,
  qid: number,
  isLater: boolean,
  isFreed: boolean,
  looksOn = isFreed,
): Promise<void> {
  const look = (await connection.call(ringQueue, [qid, isLater, false])) as LimitsLook | null
  if (look === null) return
  const limited = new LimitedQueue(look)
  const isReady = isFreed ? limited.isFreed() : limited.wakes(false)
  if (isReady || limited.wakes(true)) await connection.call(ringQueue, [qid, !isReady, true])
  if (looksOn && !isReady)
    for (const sibling of look.limits.siblings) await rung(connection, sibling, false, true, false)
}
