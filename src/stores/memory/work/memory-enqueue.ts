/**
 * An enqueue into one queue of the memory store, or one shard of an ordered one: all jobs of a call or none. A call
 * sent again only gets its answer.
 */

import type { GraphAnswer } from '../../contract/joins.js'
import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import type { CallPlace } from '../../rules/payloads.js'
import { answerToTaken, type TakenAs } from '../../rules/taken-id.js'
import type { MemoryQueues } from '../memory-queues.js'
import { isWaiting } from '../queue/memory-job.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'
import { memoryOf } from '../queue/memory-retention.js'

/** The jobs of a call that belong to one queue or shard. */
interface CallPart {
  readonly callId: string
  readonly jobs: readonly NewJob[]
  /** For each job its place in the call. Absent if the part has all jobs of the call. */
  readonly places?: readonly number[]
}

export function enqueue(queue: MemoryQueue, part: CallPart, now: number, came: (id: string) => void): Enqueued[] {
  const { callId, jobs } = part
  const before = queue.calls.answersTo(callId, now)
  if (before !== undefined) return before
  const answers = queue instanceof MemoryOrderedQueue ? pushed(queue, part, now) : added(queue, jobs, now)
  queue.calls.remember(callId, answers, now)
  for (const [i, { id }] of jobs.entries()) if (answers[i] === 'added' || answers[i] === 'replaced') came(id)
  return answers
}

function added(queue: MemoryQueue, jobs: readonly NewJob[], now: number): Enqueued[] {
  const answers = answersTo(queue, jobs, now)
  for (const [i, job] of jobs.entries()) {
    if (answers[i] !== 'added' && answers[i] !== 'replaced') continue
    const before = queue.jobs.get(job.id)
    queue.add(job, now, isWaiting(before) ? before!.createdAt : now)
  }
  return answers
}

function pushed(queue: MemoryOrderedQueue, { callId, jobs, places }: CallPart, now: number): Enqueued[] {
  if (queue.draining) return jobs.map(() => 'draining')
  const at = jobs.map((_, i): CallPlace => ({ callId, place: places?.[i] ?? i }))
  if (!hasRoom(queue, jobs, at)) return jobs.map(() => 'full')
  return jobs.map((job, i) => queue.push(job, at[i]!, now))
}

/** Payloads that are there already need no room. */
function hasRoom(queue: MemoryOrderedQueue, jobs: readonly NewJob[], at: readonly CallPlace[]): boolean {
  const { maxPending, merge } = queue.settings
  if (maxPending === undefined) return true
  const growing = jobs
    .map((job, i) => ({ id: job.id, identity: queue.identityOf(job, at[i]!) }))
    .filter(({ id, identity }) => queue.waitingPayloads(id)?.growsBy(identity) ?? true)
    .map(({ id, identity }) => (merge === 'latest' ? id : `${id}\0${identity}`))
  const growth = new Set(growing).size
  return growth === 0 || growth <= maxPending - queue.pending
}

function answersTo(queue: MemoryQueue, jobs: readonly NewJob[], now: number): Enqueued[] {
  if (queue.draining) return jobs.map(() => 'draining')
  /** The ids that wait because of this call. */
  const ids = new Set<string>()
  const answers = jobs.map((job): Enqueued => {
    if (queue.hasMember(job)) return 'duplicate'
    const as = ids.has(job.id) ? 'waiting' : takenAs(queue, job.id, now)
    const answer = as === undefined ? 'added' : answerToTaken(as, job)
    if (as !== 'waiting' && (answer === 'added' || answer === 'replaced')) ids.add(job.id)
    return answer
  })
  const room = (queue.settings.maxPending ?? Number.POSITIVE_INFINITY) - queue.pending
  return ids.size > 0 && ids.size > room ? jobs.map(() => 'full') : answers
}

/** The answer to a graph, of which nothing is added yet. */
export function graphAnswer(queues: MemoryQueues, calls: readonly EnqueueCall[], now: number): GraphAnswer {
  const [first] = calls
  const home = queues.holding(first!.queue, first!.jobs[0]!.id)
  if (home.calls.answersTo(first!.callId, now) !== undefined) return { outcome: 'added' }
  if (takenAs(home, first!.jobs[0]!.id, now) !== undefined) return { outcome: 'duplicate' }
  for (const { queue, jobs } of calls) {
    const answers = answersTo(queues.shardsOf(queue)[0]!, jobs, now)
    for (const [i, as] of answers.entries())
      if (as !== 'added' && as !== 'replaced' && as !== 'merged')
        return { outcome: 'refused', refused: { queue, id: jobs[i]!.id }, as }
  }
  return { outcome: 'added' }
}

/**
 * Undefined: the id is free. A join, a member of one, or a job that has reached a step is as good as running: nothing takes
 * its place.
 */
function takenAs(queue: MemoryQueue, id: string, now: number): TakenAs | undefined {
  const job = queue.jobs.get(id)
  if (job !== undefined && job.state !== 'completed' && !queue.isHidden(job, now)) {
    if (job.state === 'dead') return 'dead'
    const { memberOf, join } = job.spec
    const isFree = memberOf === undefined && join === undefined && job.steps.length === 0
    return isWaiting(job) && isFree ? 'waiting' : 'running'
  }
  return memoryOf(queue, id, now) === undefined ? undefined : 'remembered'
}
