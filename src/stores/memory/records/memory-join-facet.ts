/** The facet `joins` of a memory store: graphs, and what time leaves to do. */

import type { Joins } from '../../contract/joins.js'
import type { EnqueueCall } from '../../contract/new-job.js'
import { joinDeadReason } from '../../rules/join-rules.js'
import type { MemoryAdmin } from '../memory-admin.js'
import { isWaiting } from '../queue/memory-job.js'
import type { MemoryJoins } from '../queue/memory-joins.js'
import { graphAnswer } from '../work/memory-enqueue.js'

/** `joins`: throws `ClosedError` on a closed handle. */
export function memoryJoins(store: MemoryAdmin, joins: () => MemoryJoins): Joins {
  /** The reason stays that of the join's end. */
  function cancelled(name: string, id: string): boolean {
    const queue = store.queues().holding(name, id)
    const job = queue.jobs.get(id)
    if (job === undefined || job.cancelRequested) return false
    if (job.state === 'running') {
      job.reason = joinDeadReason
      queue.requestCancel(job)
      return true
    }
    if (!isWaiting(job) && job.state !== 'waiting') return false
    job.reason = joinDeadReason
    queue.end(job, 'cancelled', store.now())
    return true
  }

  return {
    async enqueue(calls: readonly EnqueueCall[]) {
      const answer = graphAnswer(store.queues(), calls, store.now())
      if (answer.outcome !== 'added') return answer
      for (const call of calls) store.enqueue(call)
      // A member may have come before its join.
      for (const { queue, jobs } of calls) for (const job of jobs) joins().add(queue, job)
      return answer
    },

    seal: async (join, sizes) => joins().seal(join, sizes, store.now()),

    look: async (join) => joins().look(join),

    ends: async (join, set, from, limit) => joins().ends(join, set, from, limit),

    async sweep() {
      const swept = joins().sweep(cancelled, store.now())
      if (swept.failed.length > 0) store.tellEnds()
      return swept
    },
  }
}
