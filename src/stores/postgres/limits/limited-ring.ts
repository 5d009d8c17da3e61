/** Rings for a limited queue: whether there is a reason depends on its limits, so it is looked at first. */

import type { FunctionCaller } from '../schema/sql-function.js'
import { lookForWork, ringQueue } from '../work/postgres-ring.js'
import { LimitedQueue } from './limited-queue.js'
import type { LimitsLook } from './limits-look.js'

/** Rings a limited queue if a claimer would receive a job, or if nobody asks when one opens. Nobody waits for it. */
export function ringLimited(
  connection: FunctionCaller,
  queue: ConstructorParameters<typeof LimitedQueue>[0],
  isFreed = false,
): void {
  connection
    .call(lookForWork, [[queue.qid], false])
    .then((answer) => {
      const look = (answer as { queues: { limited?: LimitsLook }[] }).queues[0]?.limited
      const limited = look === undefined ? undefined : new LimitedQueue(queue, look)
      const isReady = limited === undefined || (isFreed ? limited.isFreed() : limited.wakes(false))
      if (isReady || limited.wakes(true)) return connection.call(ringQueue, [queue.qid, !isReady])
      return undefined
    })
    .catch(() => {})
}
