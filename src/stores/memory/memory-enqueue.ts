/** An enqueue into one queue of the memory store: all jobs of a call or none, and a call sent again is only answered. */

import type { EnqueueCall, Enqueued, NewJob } from '../store.js'
import type { MemoryQueue } from './memory-queue.js'

export function enqueue(queue: MemoryQueue, call: EnqueueCall, now: number): Enqueued[] {
  const before = queue.calls.answersTo(call.callId, now)
  if (before !== undefined) return before
  const answers = answersTo(queue, call.jobs, now)
  for (const [i, job] of call.jobs.entries()) if (answers[i] === 'added') queue.add(job, now)
  queue.calls.remember(call.callId, answers, now)
  return answers
}

function answersTo(queue: MemoryQueue, jobs: readonly NewJob[], now: number): Enqueued[] {
  if (queue.draining) return jobs.map(() => 'draining')
  const ids = new Set<string>()
  const answers = jobs.map(({ id }): Enqueued => {
    const answer = ids.has(id) || isKnown(queue, id, now) ? 'duplicate' : 'added'
    ids.add(id)
    return answer
  })
  const added = answers.filter((answer) => answer === 'added').length
  const room = (queue.settings.maxPending ?? Number.POSITIVE_INFINITY) - queue.waiting
  return added > 0 && added > room ? jobs.map(() => 'full') : answers
}

/** Whether the id is live or remembered. */
function isKnown(queue: MemoryQueue, id: string, now: number): boolean {
  const job = queue.jobs.get(id)
  const isLive = job !== undefined && job.state !== 'completed' && !queue.isHidden(job, now)
  return isLive || queue.memoryOf(id, now) !== undefined
}
