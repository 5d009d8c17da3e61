/** Enqueueing into a Postgres store: the calls of a tick are one insert for each queue. */

import { randomUUID } from 'node:crypto'
import { CallsApartError, type EnqueueCall, type Enqueued, type NewJob } from '../../contract/new-job.js'
import type { TickAnswer } from '../../contract/schedules.js'
import { groupIn, noteBits, takenBy } from '../../rows/job-row.js'
import { placesText } from '../../rows/join-row.js'
import { payloadDigest } from '../../rows/payload-row.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'
import { weightOf } from '../../rules/claim-weight.js'
import { shardOf } from '../../rules/payloads.js'
import { answerToTaken, boundedDelayMs } from '../../rules/taken-id.js'
import { isLed } from '../../rules/wake-lead.js'
import { isLocked, lockedError } from '../client/postgres-errors.js'
import { leavePayloads } from '../ordered/inbox-functions.js'
import { pushPayloads } from '../ordered/push-functions.js'
import { endedStates, jobFlags } from '../schema/postgres-tables.js'
import type { FunctionCaller } from '../schema/sql-function.js'
import { payloadText, storedText } from '../schema/stored-payload.js'
import {
  enqueueAgain,
  enqueueInside,
  enqueueJobs,
  enqueueTogether,
  recallCall,
  rememberCall,
  replaceJob,
  takenIds,
} from './enqueue-functions.js'
import type { EndReports } from './job-end.js'
import { ringFor } from './limited-ring.js'
import { placesBy } from './places-by.js'
import { adopted } from './postgres-reshard.js'
import { ringInside } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues, QueueShards } from './postgres-settings.js'
import type { PostgresUpkeep } from './postgres-upkeep.js'

/** The answer of `enqueue_1`. */
export interface EnqueueAnswer {
  readonly t: number
  readonly done: 'ok' | 'draining' | 'full' | 'apart' | 'locked' | 'known'
  readonly added: string[] | null
  readonly again: string[]
  readonly lead: string | null
  readonly wake: number | null
  readonly limited: boolean
}

/** The answer of a function that ticks a schedule; `enqueued` is null if there was nothing to enqueue. */
export interface TickedAnswer<Answer> {
  readonly outcome: TickAnswer['outcome'] | 'moved'
  readonly enqueued: Answer | null
}

/** The answers as their letters in the memory of calls. `?`: it is not decided yet. */
const letters = { a: 'added', m: 'merged', d: 'duplicate', x: 'dead', p: 'replaced', f: 'full', r: 'draining' } as const

export class PostgresEnqueue {
  readonly #connection: FunctionCaller
  readonly #queues: PostgresQueues
  readonly #reports: EndReports | undefined
  readonly #upkeep: PostgresUpkeep | undefined

  /** Without `reports` and `upkeep` the calls are made in a transaction of a user: what they change is seen by nobody else yet. */
  constructor(connection: FunctionCaller, queues: PostgresQueues, reports?: EndReports, upkeep?: PostgresUpkeep) {
    this.#connection = connection
    this.#queues = queues
    this.#reports = reports
    this.#upkeep = upkeep
  }

  /** See `Store.enqueue`. */
  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const answers = calls.map(({ jobs }) => new Array<Enqueued>(jobs.length))
    // A call that stands in the batch twice is carried out once.
    const firsts = new Map(calls.map(({ callId, queue }, i) => [`${callId} ${queue}`, i] as const).reverse())
    const firstOf = ({ callId, queue }: EnqueueCall) => firsts.get(`${callId} ${queue}`)!
    const parts = calls.flatMap((call, i) =>
      firstOf(call) === i ? [{ ...call, answers: answers[i]!, places: [...call.jobs.keys()] }] : [],
    )
    await this.#carryOut(parts).catch((error: unknown) => {
      throw isLocked(error) && calls.length > 1 ? new CallsApartError() : error
    })
    return calls.map((call) => answers[firstOf(call)]!)
  }

  async #carryOut(parts: readonly AnsweredPart[]): Promise<void> {
    const queues = await this.#queues.sharded(parts.map(({ queue }) => queue))
    const targets = parts.flatMap((part, i) =>
      shardsFor(part, queues[i]!.shards).map(([queue, own]) => ({ queue, part: own })),
    )
    const again = targets.flatMap(({ part }, i) => (part.isResent ? [i] : []))
    const groups = placesBy(targets, ({ queue: { qid }, part }, i) =>
      part.isResent ? `again ${i}` : `${qid} after ${again.findLast((n) => n < i)}`,
    )
    const send = async (places: readonly number[]) => {
      const { queue } = targets[places[0]!]!
      const of = places.map((i) => targets[i]!.part)
      const before = of[0]!.isResent ? await this.recalled(queue, of[0]!) : undefined
      if (before !== undefined) return answer(of[0]!, await this.#decided(queue, of[0]!.jobs, before))
      if (queue.kind === 'ordered') return this.#push(queue, of)
      for (const [n, answered] of (await this.#send(queue, of)).entries()) answer(of[n]!, answered)
    }
    // What was sent before is asked about first, and later calls must not overtake it meanwhile.
    if (again.length > 0) for (const places of groups) await send(places)
    else await Promise.all(groups.map(send))
    for (const { queue } of targets) this.#upkeep?.enqueued(queue.qid)
  }

  /** Parts for one shard of an ordered queue that were not sent before. */
  async #push(queue: NumberedQueue, parts: readonly AnsweredPart[]): Promise<void> {
    await this.#adoptFirst(parts)
    const columns = pushedColumns(queue, parts)
    const pushed = (await this.#connection.call(pushPayloads, columns, parts[0]!.isResent)) as PushAnswer
    const { done } = pushed
    if (done === 'moved') {
      await this.#queues.refresh([queue.name])
      await this.#carryOut(parts)
    } else if (done === 'apart') for (const part of parts) await this.#push(queue, [part])
    else if (done !== 'ok')
      for (const part of parts)
        answer(
          part,
          part.jobs.map(() => done),
        )
    else {
      const counts = parts.map(({ jobs }) => jobs.length)
      for (const [n, answered] of split(this.#pushed(queue, parts, pushed), counts).entries())
        answer(parts[n]!, answered)
    }
  }

  /** While a reshard is under way, what the old shards have of these ids must be there first. */
  async #adoptFirst(parts: readonly PushedPart[]): Promise<void> {
    const [of] = await this.#queues.sharded([parts[0]!.queue])
    const ids = parts.flatMap(({ jobs }) => jobs.map(({ id }) => id))
    for (const old of of!.leaving) await adopted(this.#connection, old.qid, ids, of!.shards)
  }

  /** The answers to all payloads that a push has accepted. Rings. */
  #pushed(
    queue: NumberedQueue,
    parts: readonly PushedPart[],
    { t, answers, busy, lead, wake, limited }: PushAnswer,
  ): Enqueued[] {
    const all = [...answers].map((letter) => letters[letter as keyof typeof letters])
    const coming = parts.flatMap(({ jobs }) => jobs).filter((_, i) => all[i] === 'added')
    if (limited ? coming.length > 0 : !busy && isCalling(coming, t, lead, wake)) this.#ring(queue, coming, t)
    return all
  }

  /** Ticks a schedule of an ordered job. `tick` takes what `push_1` does, and answers as `tick_pushed_1`. */
  async tickOrdered(
    { queue: name, callId, jobs }: EnqueueCall,
    tick: (values: readonly unknown[]) => Promise<unknown>,
  ): Promise<TickAnswer> {
    const parts = [{ callId, queue: name, jobs, places: [...jobs.keys()] }]
    for (;;) {
      await this.#adoptFirst(parts)
      const [{ shards }] = (await this.#queues.sharded([name])) as [QueueShards]
      const shard = shards[shardOf(jobs[0]?.id ?? '', shards.length)]!
      const { outcome, enqueued } = (await tick(pushedColumns(shard, parts))) as TickedAnswer<PushAnswer>
      if (outcome === 'ticked')
        return { outcome, enqueued: enqueued === null ? [] : this.#pushed(shard, parts, enqueued) }
      if (outcome !== 'moved') return { outcome }
      await this.#queues.refresh([name])
    }
  }

  /** Enqueues in a transaction of a user, which the calls of this connection are made in. `wakes`: it may ring. */
  async enqueueIn({ queue: name, jobs, hasNewIds }: Omit<EnqueueCall, 'callId'>, wakes: boolean): Promise<Enqueued[]> {
    const [queue] = await this.#queues.named([name])
    const { qid, kind } = queue!
    if (kind === 'ordered') {
      const part = { callId: randomUUID(), queue: name, jobs, places: [...jobs.keys()] }
      // Its shard may be another by the time of the claim.
      const crcs = jobs.map(({ id }) => shardOf(id, 2 ** 32))
      const values = [name, ...payloadColumns(queue!, [part]), crcs, wakes]
      const left = (await this.#connection.call(leavePayloads, values)) as 'ok' | 'full' | 'draining'
      return jobs.map(() => (left === 'ok' ? 'added' : left))
    }
    const answer = await this.#connection.call(enqueueInside, [qid, ...columnsOf(jobs), hasNewIds === true, wakes])
    const { done, added } = answer as EnqueueAnswer
    if (done !== 'ok') return jobs.map(() => done as 'full' | 'draining')
    const left = new Set(added ?? [])
    const known = jobs.map(({ id }) => (added === null || left.delete(id) ? 'added' : undefined))
    const answers = await this.#decided(queue!, jobs, known)
    const isLate = answers.some((one, i) => known[i] === undefined && (one === 'added' || one === 'replaced'))
    if (wakes && isLate) await this.#connection.call(ringInside, [qid])
    return answers
  }

  /** The first answers to a call, as far as it was carried out; undefined: not at all. */
  async recalled(
    queue: NumberedQueue,
    call: Pick<EnqueueCall, 'callId' | 'jobs'>,
  ): Promise<(Enqueued | undefined)[] | undefined> {
    const values = [queue.qid, call.callId, callMemoryMs, callMemoryCount]
    const found = (await this.#connection.call(recallCall, values, true)) as RecalledRow[] | null
    const [first, ...others] = found?.map((row) => rememberedIn(row, call)) ?? []
    // Each time that it was sent it may have decided about some of its jobs only.
    return first?.map((one, i) => others.reduce((known, answers) => known ?? answers[i], one))
  }

  /** Calls of one queue that were not sent before, as far as is known; one of which that is not known comes alone. */
  async #send(queue: NumberedQueue, calls: readonly PushedPart[]): Promise<Enqueued[][]> {
    const jobs = calls.flatMap((call) => call.jobs)
    const isNew = calls.every(({ hasNewIds }) => hasNewIds === true)
    const ids = calls.map(({ callId }) => callId)
    const counts = calls.map((call) => call.jobs.length)
    const columns = [queue.qid, ...columnsOf(jobs), isNew, ids, counts]
    const [first] = calls
    const enqueues = isNew || calls.length === 1 ? enqueueJobs : enqueueTogether
    const answer = (await (first!.isResent
      ? this.#connection.call(enqueueAgain, [...columns, callMemoryMs, callMemoryCount], true)
      : this.#connection.call(enqueues, columns))) as EnqueueAnswer
    if (answer.done === 'locked') throw lockedError(`queue '${queue.name}' has an id of these jobs`)
    if (answer.done === 'known') {
      const before = await this.recalled(queue, first!)
      return before === undefined ? this.#send(queue, calls) : [await this.#decided(queue, first!.jobs, before)]
    }
    if (answer.done === 'apart') {
      const apart: Enqueued[][] = []
      for (const call of calls) apart.push(...(await this.#send(queue, [call])))
      return apart
    }
    return this.answered(queue, calls, answer)
  }

  /** The answers to calls that `enqueue_1` has carried out: decides about the jobs that it did not add, and rings. */
  async answered(
    queue: NumberedQueue,
    calls: readonly EnqueueCall[],
    { t, done, added, again, lead, wake, limited }: EnqueueAnswer,
  ): Promise<Enqueued[][]> {
    const jobs = calls.flatMap((call) => call.jobs)
    const counts = calls.map((call) => call.jobs.length)
    if (done === 'draining' || done === 'full') return calls.map((call) => call.jobs.map(() => done))
    const left = new Set(added ?? [])
    const known = jobs.map(({ id }) =>
      added === null || left.delete(id) ? 'added' : again.includes(id) ? 'duplicate' : undefined,
    )
    const answers = await this.#decided(queue, jobs, known)
    const coming = jobs.filter((_, i) => answers[i] === 'added' || answers[i] === 'replaced')
    if (limited ? coming.length > 0 : isCalling(coming, t, lead, wake)) this.#ring(queue, coming, t)
    const byCall = split(answers, counts)
    if (added !== null)
      for (const [i, { callId }] of calls.entries())
        await this.#connection.call(rememberCall, [queue.qid, callId, byCall[i]!.map(letterOf).join('')])
    return byCall
  }

  /** The answers to all jobs: those without one have ids that are taken, or were. */
  async #decided(
    queue: NumberedQueue,
    jobs: readonly NewJob[],
    known: readonly (Enqueued | undefined)[],
  ): Promise<Enqueued[]> {
    const answers: Enqueued[] = []
    for (const [i, one] of known.entries()) answers.push(one ?? (await this.#decide(queue, jobs[i]!)))
    return answers
  }

  /** Looks at what has the id, and begins anew if that changes meanwhile. */
  async #decide(queue: NumberedQueue, job: NewJob): Promise<Enqueued> {
    for (;;) {
      const [now, deadAge, [row]] = (await this.#connection.call(takenIds, [queue.qid, [job.id]])) as TakenAnswer
      if (row === undefined) {
        const call = this.#reports ? [[`again ${job.id}`], [1]] : [[], []]
        const again = await this.#connection.call(enqueueJobs, [queue.qid, ...columnsOf([job]), false, ...call])
        const { done, added, again: before } = again as EnqueueAnswer
        if (done !== 'ok') return done as 'full' | 'draining'
        if (before.length > 0) return 'duplicate'
        if (added === null) return 'added'
        continue
      }
      const as = takenBy({ dead_age_ms: deadAge }, takenRow(row), now)
      const answer = as === undefined ? 'added' : answerToTaken(as, job)
      if (answer !== 'added' && answer !== 'replaced') return answer
      const placed = as === 'waiting' ? { ...job, ...replacedDelay(job, row[7], now) } : job
      const values = [queue.qid, ...columnsOf([placed]), row[1], this.#reports !== undefined]
      const [, outcome, told] = (await this.#connection.call(replaceJob, values)) as [
        now: number,
        outcome: 'ok' | 'full' | 'draining' | 'stale',
        told?: number | null,
      ]
      // It is committed: a sweep makes up for reports that are not delivered.
      if (outcome === 'ok' && typeof told === 'number') await this.#reports?.deliver(told).catch(() => {})
      if (outcome === 'ok') return answer
      if (outcome !== 'stale') return outcome
    }
  }

  /** After the commit, as a statement of its own. Nobody waits for it: a lost ring is made up for by a look. */
  #ring({ qid }: NumberedQueue, jobs: readonly NewJob[], now: number): void {
    const isLater = jobs.every((job) => dueOf(job, now) > now)
    ringFor(this.#connection, qid, isLater)
  }
}

/** The jobs of a call that belong to one shard, each with its place in the call. */
interface PushedPart extends Pick<EnqueueCall, 'callId' | 'isResent' | 'hasNewIds' | 'queue' | 'jobs'> {
  readonly places: readonly number[]
}

interface PushAnswer {
  readonly t: number
  readonly done: 'ok' | 'draining' | 'full' | 'apart' | 'moved'
  readonly answers: string
  readonly busy: boolean
  readonly lead: string | null
  readonly wake: number | null
  readonly limited: boolean
}

/** A part of a call, and where the answers to its jobs belong. */
interface AnsweredPart extends PushedPart {
  readonly answers: Enqueued[]
}

type RecalledRow = [ids: string[], counts: number[] | null, answers: string | null]

/** The answers to a call in a row of the memory of calls; undefined for a job that is not decided. */
function rememberedIn(
  [ids, counts, answers]: RecalledRow,
  { callId, jobs }: Pick<EnqueueCall, 'callId' | 'jobs'>,
): (Enqueued | undefined)[] {
  const at = ids.indexOf(callId)
  const start = (counts ?? []).slice(0, at).reduce((sum, count) => sum + count, 0)
  const count = counts?.[at] ?? answers?.length ?? jobs.length
  if (answers === null) return new Array(count).fill('added')
  return [...answers.slice(start, start + count)].map((letter) => letters[letter as keyof typeof letters])
}

/** The part of the call for each shard, in the order of shards. */
function shardsFor(part: AnsweredPart, shards: readonly NumberedQueue[]): [NumberedQueue, AnsweredPart][] {
  if (shards.length === 1) return [[shards[0]!, part]]
  return shards.flatMap((shard, n): [NumberedQueue, AnsweredPart][] => {
    const own = part.jobs.flatMap(({ id }, i) => (shardOf(id, shards.length) === n ? [i] : []))
    const of = { ...part, jobs: own.map((i) => part.jobs[i]!), places: own.map((i) => part.places[i]!) }
    return own.length === 0 ? [] : [[shard, of]]
  })
}

/** A call that is sent again has the answers that it had, be its jobs others. */
function answer({ places, answers }: AnsweredPart, answered: readonly Enqueued[]): void {
  if (places.length === answers.length) answers.splice(0, answers.length, ...answered)
  else for (const [n, place] of places.entries()) answers[place] = answered[n]!
}

export type TakenAnswer = [now: number, deadAge: number | null, rows: TakenColumns[]]
type TakenColumns = [
  id: string,
  state: number,
  fence: number,
  flags: number,
  until: number | null,
  finished: number | null,
  remember: number,
  created: number,
]

/** As `takenBy` reads it. A memory without a result is as good as a kept result that is out of date. */
export function takenRow([, state, , flags, until, finished, remember]: TakenColumns) {
  const { kept, dead, rememberedCompleted } = endedStates
  const isMemory = state >= rememberedCompleted
  return {
    state: isMemory ? kept : state,
    expires_at: state === kept ? until : null,
    finished_at: isMemory ? until : finished,
    remember_ms: isMemory ? 0 : state === dead ? 0 : remember,
    noted: (flags & (jobFlags.member | jobFlags.join | jobFlags.steps)) === 0 ? 0 : noteBits.steps,
  }
}

function replacedDelay(job: NewJob, createdAt: number, now: number): Pick<NewJob, 'delayMs'> {
  return job.delayMs === undefined ? {} : { delayMs: boundedDelayMs(job, createdAt, now) }
}

function dueOf(job: NewJob, now: number): number {
  return job.runAt ?? now + boundedDelayMs(job, now, now)
}

/** Whether one of these jobs is a reason to ring: it is ready, or due before the lead asks. */
function isCalling(jobs: readonly NewJob[], now: number, lead: string | null, wake: number | null): boolean {
  const known = lead === null || wake === null ? undefined : { worker: lead, wakeAt: wake }
  return jobs.some((job) => {
    const due = dueOf(job, now)
    return due <= now || !(isLed(known, now) && known.wakeAt <= due)
  })
}

/** The columns that `enqueue_1` takes; null for one in which all jobs have the default. */
export function columnsOf(jobs: readonly NewJob[]): unknown[] {
  const column = columnIn(jobs)
  return [
    jobs.map(({ id }) => id),
    jobs.map(({ task }) => task),
    jobs.map(({ payload }) => payloadText(payload)),
    column(({ codec }) => codec),
    column(({ meta }) => (meta === undefined ? undefined : payloadText(meta))),
    column(({ priority }) => (priority === 0 ? undefined : -priority)),
    column((job) => (job.delayMs === undefined ? undefined : Math.round(boundedDelayMs(job, 0, 0) * 1_000))),
    column(({ runAt }) => (runAt === undefined ? undefined : Math.round(runAt * 1_000))),
    column(({ expiresMs }) => (expiresMs === undefined ? undefined : Math.ceil(expiresMs))),
    column(({ rememberMs }) => (rememberMs > 0 ? Math.ceil(rememberMs) : undefined)),
    jobs.map((job) => weightOf(job)),
    column(({ memberOf }) => memberOf && placesText(memberOf)),
    column(({ ifWaiting }) => (ifWaiting === undefined ? undefined : true)),
    column((job) => groupIn(job)),
    column(({ fields }) => fields && storedText(JSON.stringify(fields))),
    column(({ reportsDeath }) => reportsDeath),
  ]
}

/** Makes columns of these jobs: null for one in which all have the default. */
function columnIn(jobs: readonly NewJob[]) {
  return <T>(read: (job: NewJob) => T | null | undefined) => {
    const values = jobs.map((job) => read(job) ?? null)
    return values.some((value) => value !== null) ? values : null
  }
}

/** The columns that `push_1` takes. */
function pushedColumns(queue: NumberedQueue, parts: readonly PushedPart[]): unknown[] {
  const calls = [parts.map(({ callId }) => callId), parts.map(({ jobs }) => jobs.length)]
  return [queue.qid, queue.merge, ...payloadColumns(queue, parts), ...calls]
}

function payloadColumns(queue: NumberedQueue, parts: readonly PushedPart[]): unknown[] {
  const jobs = parts.flatMap((part) => part.jobs)
  const column = columnIn(jobs)
  return [
    jobs.map(({ id }) => id),
    jobs.map(({ task }) => task),
    jobs.map(({ payload }) => payloadText(payload)),
    column(({ codec }) => codec),
    column(({ meta }) => (meta === undefined ? undefined : payloadText(meta))),
    column(({ delayMs }) => (delayMs ? Math.round(delayMs * 1_000) : undefined)),
    column(({ runAt }) => (runAt === undefined ? undefined : Math.round(runAt * 1_000))),
    jobs.map((job) => weightOf(job)),
    // No store distinguishes -0 from 0.
    column(({ score }) => (score === undefined ? undefined : score + 0)),
    parts.flatMap(({ callId, jobs, places }) =>
      jobs.map((job, i) => Buffer.from(payloadDigest(job, queue.merge, { callId, place: places[i]! })).toString('hex')),
    ),
    column((job) => groupIn(job)),
  ]
}

function split<T>(all: readonly T[], counts: readonly number[]): T[][] {
  let end = 0
  return counts.map((count) => {
    end += count
    return all.slice(end - count, end)
  })
}

function letterOf(answer: Enqueued): string {
  return Object.entries(letters).find(([, name]) => name === answer)![0]
}
