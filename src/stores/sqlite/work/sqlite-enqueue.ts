/** Enqueueing into a SQLite store, into plain and into ordered queues. */

import { randomUUID } from 'node:crypto'
import type { GraphAnswer } from '../../contract/joins.js'
import type { Enqueued, NewJob } from '../../contract/new-job.js'
import type { MemberOf } from '../../contract/new-join.js'
import {
  completed,
  groupIn,
  isHidden,
  isRemembered,
  noteBits,
  poolOf,
  ready,
  scheduled,
  takenBy,
  waiting,
} from '../../rows/job-row.js'
import { placesText } from '../../rows/join-row.js'
import { payloadDigest } from '../../rows/payload-row.js'
import { bounded, isBusy, isLimited, positionOf, share } from '../../rows/queue-row.js'
import { payloadToStored } from '../../rows/stored-text.js'
import { type CallPlace, shardOf } from '../../rules/payloads.js'
import { expiryOf, nextStamp, stampOf } from '../../rules/sequence.js'
import { answerToTaken, boundedDelayMs, type TakenAs } from '../../rules/taken-id.js'
import type { Statement } from '../file/sqlite-driver.js'
import { changeSome } from '../rows/sqlite-job.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import {
  type BareCall,
  type BareMembers,
  bareOf,
  jobsOf,
  type SqliteEnqueueCall,
  type SqliteGraphCall,
} from './sqlite-bare-call.js'

/** A member of the graph that is being added. Of members in a row it is the last. */
interface ComingMember {
  readonly queue: string
  readonly id: string
  readonly places: readonly MemberOf[]
}

export class SqliteEnqueue {
  readonly #transaction: SqliteTransaction
  readonly #insert: Statement
  readonly #insertBare: Statement
  readonly #insertExpiring: Statement
  readonly #insertNoted: Statement
  readonly #insertAlike: Statement
  readonly #insertMixed: Statement
  readonly #insertMembers: Statement
  readonly #takeBack: Statement
  readonly #keepCreatedAt: Statement
  readonly #memory: Statement
  readonly #forget: Statement
  readonly #pushes: SqliteOrderedEnqueue
  /** The number of the last row that was inserted of a job with something beside its row. */
  #noted = 0
  /** The members of the graph that is being added: their joins may come after them. */
  #members: ComingMember[] | undefined

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    this.#pushes = new SqliteOrderedEnqueue(transaction)
    const insert = (columns: string, values: string) =>
      transaction.db.prepare(
        `INSERT OR IGNORE INTO job (qid, id, task, position, stamp, remember_ms, created_at, updated_at, payload${columns})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8${values})`,
      )
    this.#insert = insert(', state, rank, codec, meta, grp, pool', ', ?9, ?10, ?11, ?12, ?13, ?14')
    this.#insertExpiring = insert(
      ', state, rank, codec, meta, grp, pool, expires_at',
      ', ?9, ?10, ?11, ?12, ?13, ?14, ?15',
    )
    this.#insertNoted = insert(
      ', state, rank, codec, meta, grp, pool, expires_at, noted, places',
      ', ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17',
    )
    // Most jobs are ready and need no further values. Each value that is not bound saves 2 % of an insert.
    this.#insertBare = insert('', '')
    const insertMany = (
      task: string,
      rememberMs: string,
      more: readonly [columns: string, values: string] = ['', ''],
    ) =>
      transaction.db.prepare(
        `INSERT OR IGNORE INTO job (qid, id, task, position, stamp, remember_ms, created_at, updated_at, payload${more[0]})
         SELECT ?1, value ->> 0, ${task}, ?2 + ?3 * key, ?4 + key, ${rememberMs}, ?5, ?5, value ->> 1${more[1]} FROM json_each(?6)`,
      )
    // SQLite parses a row anew for each value that is read from it, which takes an eighth of an insert.
    this.#insertAlike = insertMany('?7', '?8')
    this.#insertMembers = insertMany('?7', '?8', [', noted, places', `, ${noteBits.member}, ?9`])
    this.#insertMixed = insertMany('value ->> 2', 'value ->> 3')
    this.#takeBack = transaction.db.prepare('DELETE FROM job WHERE rid BETWEEN ? AND ?')
    this.#keepCreatedAt = transaction.db.prepare('UPDATE job SET created_at = ? WHERE qid = ? AND id = ?')
    this.#memory = transaction.db.prepare('SELECT until FROM remembered WHERE qid = ? AND id = ?')
    this.#forget = transaction.db.prepare('DELETE FROM remembered WHERE qid = ? AND id = ?')
  }

  enqueue(calls: readonly (SqliteEnqueueCall | BareCall)[]): Enqueued[][] {
    const now = this.#transaction.clock.now()
    // All queues are looked up before the first is changed, so an unknown one changes nothing.
    const queues = calls.map(({ queue }) => this.#transaction.queues.get(queue))
    this.#refuseFull(queues, calls)
    return calls.map((call, i) =>
      'rows' in call && call.isRun ? this.#answersToRun(queues[i]!, call, now) : this.#answersOf(queues[i]!, call, now),
    )
  }

  /** Adds a graph, all of it or nothing: see `Joins.enqueue`. */
  graph(calls: readonly SqliteGraphCall[]): GraphAnswer {
    const { clock, calls: known, joins, queues: rows } = this.#transaction
    const now = clock.now()
    const queues = calls.map(({ queue }) => rows.get(queue))
    const [[first], [queue]] = [calls, queues] as const
    if (known.answersTo(queue!, first!.callId) !== undefined) return { outcome: 'added' }
    if (this.#takenAs(queue!, first!.jobs[0]!.id, now) !== undefined) return { outcome: 'duplicate' }
    for (const [i, call] of calls.entries()) {
      const refused = this.#refusedOf(queues[i]!, call, now)
      if (refused !== undefined) return refused
    }
    this.#refuseFull(queues, calls)
    const members: ComingMember[] = []
    this.#members = members
    try {
      for (const [i, { callId, jobs, runs = [] }] of calls.entries()) {
        const added = this.#addEach(queues[i]!, jobs, now)
        for (const run of runs) added.push(...this.#addAll(queues[i]!, run, run, now))
        known.remember(queues[i]!, callId, added)
      }
    } finally {
      this.#members = undefined
    }
    for (const { queue: of, id, places } of members) joins.enter({ queue: of, id }, places)
    return { outcome: 'added' }
  }

  /** The first job of a call of a graph that cannot be added. Runs have new ids. */
  #refusedOf(
    queue: QueueRow,
    { jobs, runs = [], hasNewIds = false }: SqliteGraphCall,
    now: number,
  ): GraphAnswer | undefined {
    const refusal = (id: string, as: Exclude<Enqueued, 'added' | 'merged' | 'replaced'>): GraphAnswer => ({
      outcome: 'refused',
      refused: { queue: queue.name, id },
      as,
    })
    const first = jobs[0]?.id ?? (runs[0] && jobsOf(runs[0])[0]!.id)
    if (first === undefined) return undefined
    if (queue.draining) return refusal(first, 'draining')
    const ids = new Set<string>()
    let refused: GraphAnswer | undefined
    for (const job of jobs) {
      const as = ids.has(job.id) ? 'waiting' : hasNewIds ? undefined : this.#takenAs(queue, job.id, now)
      const answer = this.#isMemberAlready(queue, job)
        ? 'duplicate'
        : as === undefined
          ? 'added'
          : answerToTaken(as, job)
      if (answer !== 'added' && answer !== 'replaced') refused ??= refusal(job.id, answer as 'duplicate')
      else if (as !== 'waiting') ids.add(job.id)
    }
    const count = runs.reduce((sum, run) => sum + run.count, ids.size)
    return count > this.#roomIn(queue) ? refusal(first, 'full') : refused
  }

  #answersOf(queue: QueueRow, call: SqliteEnqueueCall | BareCall, now: number): Enqueued[] {
    if (queue.kind === 'ordered') return this.#pushes.call(call, now)
    return this.#transaction.calls.once(queue, call.callId, () => this.#answersTo(queue, call, now))
  }

  /** Adds the jobs of all calls of a run together. If that cannot be, each call gets its own answer. */
  #answersToRun(queue: QueueRow, run: BareCall, now: number): Enqueued[] {
    const jobs = jobsOf(run)
    const isOpen = queue.kind === 'plain' && !queue.draining && run.count <= this.#roomIn(queue)
    if (!isOpen || !this.#addTogether(queue, run, now))
      return jobs.map((job) => this.#answersOf(queue, { callId: job.id, queue: run.queue, jobs: [job] }, now)[0]!)
    for (const { id } of jobs) this.#transaction.calls.remember(queue, id, ['added'])
    return all(run.count, 'added')
  }

  /**
   * Refuses calls for which there is no room. A call that is sent again gets its first answer all the same. Throws
   * `StoreFullError`.
   */
  #refuseFull(queues: readonly QueueRow[], calls: readonly (SqliteEnqueueCall | SqliteGraphCall | BareCall)[]): void {
    const bytes = calls.reduce((sum, call) => sum + bytesOf(call), 0)
    if (this.#transaction.room.takes(bytes)) return
    const isAnswered = ({ name }: QueueRow, call: SqliteEnqueueCall | BareCall) =>
      jobsOf(call).every(
        ({ id }) =>
          this.#transaction.calls.answersTo(this.#transaction.queues.holding(name, id), call.callId) !== undefined,
      )
    if (!calls.every((call, i) => isAnswered(queues[i]!, call))) throw this.#transaction.room.refusal()
  }

  #answersTo(queue: QueueRow, call: SqliteEnqueueCall | BareCall, now: number): Enqueued[] {
    const bare = 'rows' in call ? call : bareOf(call)
    const count = 'rows' in call ? call.count : call.jobs.length
    if (queue.draining) return all(count, 'draining')
    const room = this.#roomIn(queue)
    if (count > room) {
      const added = this.#countNew(queue, jobsOf(call), now)
      if (added > 0 && added > room) return all(count, 'full')
    }
    return this.#addAll(queue, call, bare, now)
  }

  #addAll(queue: QueueRow, call: SqliteEnqueueCall | BareCall, bare: BareCall | undefined, now: number): Enqueued[] {
    if (bare !== undefined && this.#addTogether(queue, bare, now)) return all(bare.count, 'added')
    return this.#addEach(queue, jobsOf(call), now)
  }

  /** How many more jobs may wait. */
  #roomIn(queue: QueueRow): number {
    return share(queue, queue.max_pending) - queue.ready - queue.scheduled - queue.waiting
  }

  #addEach(queue: QueueRow, jobs: readonly NewJob[], now: number): Enqueued[] {
    let soonestMs = Number.POSITIVE_INFINITY
    const answers = jobs.map((job): Enqueued => {
      const [answer, delayMs] = this.#enqueue(queue, job, now)
      soonestMs = Math.min(soonestMs, delayMs)
      return answer
    })
    if (isLimited(queue)) {
      for (const [i, { id }] of jobs.entries()) if (isIn(answers[i]!)) this.#transaction.ringFor(queue, id, now)
    } else if (soonestMs === 0) this.#transaction.ring(queue)
    else if (soonestMs < Number.POSITIVE_INFINITY) this.#transaction.ringForLater(queue, soonestMs)
    return answers
  }

  #countNew(queue: QueueRow, jobs: readonly NewJob[], now: number): number {
    const added = new Set<string>()
    for (const job of jobs) {
      if (added.has(job.id) || this.#isMemberAlready(queue, job)) continue
      const as = this.#takenAs(queue, job.id, now)
      if (as !== 'waiting' && isIn(as === undefined ? 'added' : answerToTaken(as, job))) added.add(job.id)
    }
    return added.size
  }

  /** Undefined: the id is free. */
  #takenAs(queue: QueueRow, id: string, now: number): TakenAs | undefined {
    const job = this.#transaction.jobs.find(queue, id)
    if (job === undefined) return this.#isInMemory(queue, id, now) ? 'remembered' : undefined
    return takenBy(queue, job, now)
  }

  #isInMemory(queue: QueueRow, id: string, now: number): boolean {
    if (queue.remembered === 0) return false
    const memory = this.#memory.get(queue.qid, id) as { until: number } | undefined
    return memory !== undefined && memory.until > now
  }

  /** Adds all jobs with one statement, and rings, if all are new. Otherwise changes nothing and returns false. */
  #addTogether(queue: QueueRow, call: BareCall, now: number): boolean {
    const { rows, kind, count, heaviest, hasNewIds = false } = call
    // Ids of users may be remembered.
    if (queue.remembered > 0 && !hasNewIds) return false
    const members = kind?.members
    if (members !== undefined && this.#areMembersAlready(queue, members)) return false
    const first = nextStamp(queue.last_stamp, now)
    const [position, step] = [positionOf(queue, first), positionOf(queue, 1)]
    const values = [queue.qid, position, step, first, now, rows]
    const ran =
      members !== undefined
        ? this.#insertMembers.run(
            ...values,
            kind!.task,
            kind!.rememberMs,
            placesText([members.first], idIn(members, 0)),
          )
        : kind
          ? this.#insertAlike.run(...values, kind.task, kind.rememberMs)
          : this.#insertMixed.run(...values)
    const [added, last] = [Number(ran.changes), Number(ran.lastInsertRowid)]
    if (added < count) {
      // The rows of one statement are numbered one after the other.
      if (added > 0) changeSome(this.#takeBack, added, last - added + 1, last)
      return false
    }
    this.#transaction.weight.addWeight(queue, heaviest)
    queue.last_stamp = first + added - 1
    queue.ready += added
    if (members !== undefined) this.#enter(queue, idIn(members, count - 1), [placeIn(members, count - 1)])
    if (!isLimited(queue)) this.#transaction.ring(queue)
    else for (const { id } of jobsOf(call)) this.#transaction.ringFor(queue, id, now)
    return true
  }

  /** The answer, and the ms until the job is due: 0 if it is ready, Infinity if nothing changed. */
  #enqueue(queue: QueueRow, job: NewJob, now: number): [answer: Enqueued, delayMs: number] {
    if (this.#isMemberAlready(queue, job)) return ['duplicate', Number.POSITIVE_INFINITY]
    const addedMs = this.#add(queue, job, now)
    if (addedMs !== undefined) return ['added', addedMs]
    const before = this.#transaction.jobs.find(queue, job.id)
    const answer = answerToTaken(this.#takenAs(queue, job.id, now)!, job)
    if (!isIn(answer)) return [answer, Number.POSITIVE_INFINITY]
    if (before !== undefined) this.#transaction.jobs.drop(queue, before)
    this.#forgetId(queue, job.id)
    if (before === undefined || before.state > ready) return [answer, this.#add(queue, job, now)!]
    const delayMs = this.#add(queue, job, now, before.created_at)!
    this.#keepCreatedAt.run(before.created_at, queue.qid, job.id)
    return [answer, delayMs]
  }

  #forgetId(queue: QueueRow, id: string): void {
    if (queue.remembered > 0) queue.remembered -= Number(this.#forget.run(queue.qid, id).changes)
  }

  /**
   * Returns the ms until the job is due, 0 if it is ready; undefined, with nothing changed, if the id is live or
   * remembered.
   */
  #add(queue: QueueRow, job: NewJob, now: number, createdAt = now): number | undefined {
    if (queue.remembered > 0) {
      if (this.#isInMemory(queue, job.id, now)) return undefined
      this.#forgetId(queue, job.id)
    }
    const due = job.runAt ?? now + boundedDelayMs(job, createdAt, now)
    const state = job.join !== undefined ? waiting : due > now ? scheduled : ready
    // Behind the jobs that are ready already, however long ago this one was due.
    const stamp = state === scheduled ? bounded(stampOf(due)) : nextStamp(queue.last_stamp, now)
    // Inserts first, because most ids are new: the index that must be written anyway also finds an existing id.
    if (!this.#insertRow(queue, job, state, stamp, now)) {
      const leftover = this.#transaction.jobs.find(queue, job.id)!
      const isLive = leftover.state !== completed && !isHidden(queue, leftover, now)
      if (isLive || isRemembered(leftover, now)) return undefined
      this.#transaction.jobs.drop(queue, leftover)
      this.#insertRow(queue, job, state, stamp, now)
    }
    this.#transaction.weight.add(queue, job)
    if (state === ready) {
      queue.last_stamp = stamp
      queue.ready += 1
    } else if (state === scheduled) queue.scheduled += 1
    else {
      queue.last_stamp = stamp
      queue.waiting += 1
    }
    const grp = groupIn(job)
    if (grp !== null) {
      this.#transaction.lanes.count(queue, { state, suspect: 0, grp }, 1)
      this.#transaction.lanes.refresh(queue, grp)
    }
    if (job.join !== undefined || job.memberOf !== undefined) this.#enterJoins(queue, job, now)
    // A join that has nobody to wait for has rung.
    return state === ready ? 0 : state === scheduled ? due - now : Number.POSITIVE_INFINITY
  }

  #isMemberAlready({ name }: QueueRow, { id, memberOf }: NewJob): boolean {
    return memberOf !== undefined && this.#transaction.joins.hasMember({ queue: name, id }, memberOf)
  }

  #areMembersAlready({ name }: QueueRow, members: BareMembers): boolean {
    return this.#transaction.joins.hasMember({ queue: name, id: idIn(members, 0) }, [members.first])
  }

  /** Of members in a row only the last one needs to be named. */
  #enter(queue: QueueRow, id: string, places: readonly MemberOf[]): void {
    queue.membered = 1
    if (this.#members === undefined) this.#transaction.joins.enter({ queue: queue.name, id }, places)
    else this.#members.push({ queue: queue.name, id, places })
  }

  #enterJoins(queue: QueueRow, job: NewJob, now: number): void {
    if (job.memberOf !== undefined) this.#enter(queue, job.id, job.memberOf)
    if (job.join !== undefined) this.#transaction.joins.begin(queue, this.#noted, job, now)
  }

  #insertRow(queue: QueueRow, job: NewJob, state: number, stamp: number, now: number): boolean {
    const { id, task, priority, rememberMs, codec, meta, payload } = job
    const [qid, grp, position, stored] = [queue.qid, groupIn(job), positionOf(queue, stamp), payloadToStored(payload)]
    const expiresAt = job.join === undefined ? expiryOf(job, now) : undefined
    const isPlain = state === ready && priority === 0 && codec === undefined && meta === undefined && grp === null
    const isNoted = job.join !== undefined || job.memberOf !== undefined || job.fields !== undefined || job.reportsDeath
    if (isPlain && !isNoted && expiresAt === undefined)
      return this.#insertBare.run(qid, id, task, position, stamp, rememberMs, now, stored).changes === 1
    const [rank, storedMeta] = [0 - priority, meta === undefined ? null : payloadToStored(meta)]
    const more = [state, rank, codec ?? null, storedMeta, grp, poolOf(0, grp)]
    const values = [qid, id, task, position, stamp, rememberMs, now, stored, ...more]
    if (expiresAt === undefined && !isNoted) return this.#insert.run(...values).changes === 1
    if (expiresAt !== undefined)
      queue.expiring_at = Math.min(queue.expiring_at ?? Number.POSITIVE_INFINITY, bounded(expiresAt))
    const expires = expiresAt === undefined ? null : bounded(expiresAt)
    if (!isNoted) return this.#insertExpiring.run(...values, expires).changes === 1
    const { join, memberOf, fields, reportsDeath } = job
    const tied = (join ? noteBits.join : 0) | (memberOf ? noteBits.member : 0)
    const noted = tied | (fields ? noteBits.notes : 0) | (reportsDeath ? noteBits.reports : 0)
    const places = memberOf === undefined ? null : placesText(memberOf, id)
    const { changes, lastInsertRowid } = this.#insertNoted.run(...values, expires, noted, places)
    this.#noted = Number(lastInsertRowid)
    if (changes !== 1) return false
    if (fields !== undefined) this.#transaction.checkpoints.writeFields(this.#noted, fields)
    return true
  }
}

interface ArrivingJob {
  readonly job: NewJob
  readonly place: CallPlace
}

/**
 * Enqueueing into ordered queues: a call adds all of its payloads in a shard or none, and a call that is sent again only gets
 * its answer.
 */
class SqliteOrderedEnqueue {
  readonly #transaction: SqliteTransaction

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
  }

  call(call: SqliteEnqueueCall | BareCall, now: number): Enqueued[] {
    const { callId, queue } = call
    const from = callId ?? randomUUID()
    const jobs = jobsOf(call).map((job, i): ArrivingJob => ({ job, place: { callId: from, place: i } }))
    const first = this.#transaction.queues.get(queue)
    const push = (shard: QueueRow, some: readonly ArrivingJob[]) =>
      this.#transaction.calls.once(shard, callId, () => this.#answersTo(shard, some, now))
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
        this.#transaction.queues.shard(queue, shard)!,
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
    if (queue.resharding !== null) for (const { job } of jobs) this.#transaction.holding(queue.name, job.id)
    const room = share(queue, queue.max_pending) - queue.pending
    if (jobs.length > room) {
      const growth = this.#growth(queue, jobs)
      if (growth > 0 && growth > room) return jobs.map(() => 'full')
    }
    const { orderedJobs } = this.#transaction
    const due = jobs.map(({ job, place }) => orderedJobs.push(queue, job, payloadDigest(job, queue.merge, place), now))
    for (const [i, dueMs] of due.entries()) if (dueMs !== undefined) this.#ringFor(queue, jobs[i]!.job.id, dueMs, now)
    return due.map((dueMs) => (dueMs === undefined ? 'merged' : 'added'))
  }

  #ringFor(queue: QueueRow, id: string, dueMs: number, now: number): void {
    if (isLimited(queue)) this.#transaction.ringFor(queue, id, now)
    else if (dueMs > 0) this.#transaction.ringForLater(queue, dueMs)
    else if (!isBusy(queue)) this.#transaction.ring(queue)
  }

  /** How many more payloads would wait. Payloads that are there already need no room. */
  #growth(queue: QueueRow, jobs: readonly ArrivingJob[]): number {
    const { orderedJobs } = this.#transaction
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

/** About the bytes that each job takes on the disk besides its payload and meta: for its row and its index entries. */
const rowBytes = 512

function bytesOf(call: SqliteEnqueueCall | SqliteGraphCall | BareCall): number {
  if ('rows' in call) return rowBytes * call.count + call.units
  const runs = ('runs' in call && call.runs) || []
  const ofRuns = runs.reduce((sum, { count, units }) => sum + rowBytes * count + units, 0)
  return (
    ofRuns +
    call.jobs.reduce((sum, { payload, meta }) => sum + rowBytes + (payload?.length ?? 0) + (meta?.length ?? 0), 0)
  )
}

/** The place of the member that is `i` behind the first. */
function placeIn({ first }: BareMembers, i: number): MemberOf {
  return { ...first, number: first.number + i }
}

function idIn({ first, ids }: BareMembers, i: number): string {
  return `${ids}${first.number + i}`
}

/** Whether the job is in the queue now. */
function isIn(answer: Enqueued): boolean {
  return answer === 'added' || answer === 'replaced'
}

function all(count: number, answer: Enqueued): Enqueued[] {
  return new Array<Enqueued>(count).fill(answer)
}
