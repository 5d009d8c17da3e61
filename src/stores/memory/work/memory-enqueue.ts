/**
 * An enqueue into one queue of the memory store, or one shard of an ordered one: all jobs of a call or none. A call
 * sent again only gets its answer.
 */

import type { Enqueued, NewJob } from '../../contract/new-job.js'
import { payloadIdentity } from '../../rules/payloads.js'
import { isWaiting } from '../queue/memory-job.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

export function enqueue(
  queue: MemoryQueue,
  callId: string,
  jobs: readonly NewJob[],
  now: number,
  came: (id: string) => void,
): Enqueued[] {
  const before = queue.calls.answersTo(callId, now)
  if (before !== undefined) return before
  const answers = queue instanceof MemoryOrderedQueue ? pushed(queue, jobs, now) : added(queue, jobs, now)
  queue.calls.remember(callId, answers, now)
  for (const [i, { id }] of jobs.entries()) if (answers[i] === 'added' || answers[i] === 'replaced') came(id)
  return answers
}

function added(queue: MemoryQueue, jobs: readonly NewJob[], now: number): Enqueued[] {
  const answers = answersTo(queue, jobs, now)
  for (const [i, job] of jobs.entries()) {
    if (answers[i] === 'added') queue.add(job, now)
    else if (answers[i] === 'replaced') queue.add(job, now, queue.jobs.get(job.id)!.createdAt)
  }
  return answers
}

function pushed(queue: MemoryOrderedQueue, jobs: readonly NewJob[], now: number): Enqueued[] {
  if (queue.draining) return jobs.map(() => 'draining')
  if (!hasRoom(queue, jobs)) return jobs.map(() => 'full')
  return jobs.map((job) => queue.push(job, now))
}

/** Payloads that merge with equal ones need no room. */
function hasRoom(queue: MemoryOrderedQueue, jobs: readonly NewJob[]): boolean {
  const { maxPending, merge } = queue.settings
  if (maxPending === undefined) return true
  const growing = jobs
    .filter((job) => queue.waitingPayloads(job.id)?.growsBy(job) ?? true)
    .map((job) => (merge === 'latest' ? job.id : `${job.id}\0${payloadIdentity(job)}`))
  const growth = new Set(growing).size
  return growth === 0 || growth <= maxPending - queue.pending
}

function answersTo(queue: MemoryQueue, jobs: readonly NewJob[], now: number): Enqueued[] {
  if (queue.draining) return jobs.map(() => 'draining')
  const ids = new Set<string>()
  const answers = jobs.map(({ id, ifWaiting }): Enqueued => {
    const isHere = ids.has(id)
    if (!isHere && !isKnown(queue, id, now)) {
      ids.add(id)
      return 'added'
    }
    return ifWaiting === 'replace' && (isHere || isWaiting(queue.jobs.get(id))) ? 'replaced' : 'duplicate'
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
