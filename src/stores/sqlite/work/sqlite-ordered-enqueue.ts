/**
 * Enqueueing into ordered queues of a SQLite store: a call adds all of its payloads in a shard or none, and a call that
 * is sent again only gets its answer.
 */

import { randomUUID } from 'node:crypto'
import type { Enqueued, NewJob } from '../../contract/new-job.js'
import { type CallPlace, shardOf } from '../../rules/payloads.js'
import { payloadDigest } from '../rows/sqlite-payloads.js'
import { isBusy, isLimited, type QueueRow, share } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { type BareCall, jobsOf, type SqliteEnqueueCall } from './sqlite-bare-call.js'

interface ArrivingJob {
  readonly job: NewJob
  readonly place: CallPlace
}

export class SqliteOrderedEnqueue {
  readonly #session: SqliteTransaction

  constructor(session: SqliteTransaction) {
    this.#session = session
  }

  call(call: SqliteEnqueueCall | BareCall, now: number): Enqueued[] {
    const { callId, queue } = call
    const from = callId ?? randomUUID()
    const jobs = jobsOf(call).map((job, i): ArrivingJob => ({ job, place: { callId: from, place: i } }))
    const first = this.#session.queues.get(queue)
    const push = (shard: QueueRow, some: readonly ArrivingJob[]) =>
      this.#session.calls.once(shard, callId, () => this.#answersTo(shard, some, now))
    if (first.shards === 1) return push(first, jobs)
    const places = new Map<number, number[]>()
    for (const [place, { job }] of jobs.entries()) {
      const shard = shardOf(job.id, first.shards)
      const others = places.get(shard)
      if (others === undefined) places.set(shard, [place])
      else others.push(place)
    }
    const answers = new Array<Enqueued>(jobs.length)
    for (const [shard, here] of places) {
      const answered = push(
        this.#session.queues.shard(queue, shard)!,
        here.map((place) => jobs[place]!),
      )
      for (const [i, place] of here.entries()) answers[place] = answered[i]!
    }
    return answers
  }

  #answersTo(queue: QueueRow, jobs: readonly ArrivingJob[], now: number): Enqueued[] {
    if (queue.draining) return jobs.map(() => 'draining')
    // Payloads that a resharding has yet to move to this shard are moved first: they count, and new ones merge with
    // them.
    if (queue.resharding !== null) for (const { job } of jobs) this.#session.holding(queue.name, job.id)
    const room = share(queue, queue.max_pending) - queue.pending
    if (jobs.length > room) {
      const growth = this.#growth(queue, jobs)
      if (growth > 0 && growth > room) return jobs.map(() => 'full')
    }
    const { orderedJobs } = this.#session
    const due = jobs.map(({ job, place }) => orderedJobs.push(queue, job, payloadDigest(job, queue.merge, place), now))
    for (const [i, dueMs] of due.entries()) if (dueMs !== undefined) this.#ringFor(queue, jobs[i]!.job.id, dueMs, now)
    return due.map((dueMs) => (dueMs === undefined ? 'merged' : 'added'))
  }

  #ringFor(queue: QueueRow, id: string, dueMs: number, now: number): void {
    if (isLimited(queue)) this.#session.ringFor(queue, id, now)
    else if (dueMs > 0) this.#session.ringForLater(queue, dueMs)
    else if (!isBusy(queue)) this.#session.ring(queue)
  }

  /** How many more payloads would wait. Payloads that are there already need no room. */
  #growth(queue: QueueRow, jobs: readonly ArrivingJob[]): number {
    const { orderedJobs } = this.#session
    const isLatest = queue.merge === 'latest'
    const grown = new Set<string>()
    for (const { job, place } of jobs) {
      const set = orderedJobs.waitingSet(queue, job.id)
      const digest = payloadDigest(job, queue.merge, place)
      const isThere = set !== undefined && (isLatest || orderedJobs.payloads.has(set, digest))
      if (isThere) continue
      grown.add(isLatest ? job.id : `${job.id}\0${Buffer.from(digest).toString('latin1')}`)
    }
    return grown.size
  }
}
