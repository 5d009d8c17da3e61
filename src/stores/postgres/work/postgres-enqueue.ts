/** Enqueueing into a Postgres store: the calls of a tick are one insert for each queue. */

import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import { noteBits, takenBy } from '../../rows/job-row.js'
import { placesText } from '../../rows/join-row.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'
import { weightOf } from '../../rules/claim-weight.js'
import { answerToTaken, boundedDelayMs } from '../../rules/taken-id.js'
import { isLed } from '../../rules/wake-lead.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import type { PostgresReports } from '../joins/join-reports.js'
import { endedStates, jobFlags } from '../schema/postgres-tables.js'
import { enqueueJobs, recallCall, rememberCall, replaceJob, takenIds } from './enqueue-functions.js'
import { placesBy } from './places-by.js'
import { ringQueue } from './postgres-ring.js'
import type { NumberedQueue, PostgresQueues } from './postgres-settings.js'
import { payloadText } from './stored-payload.js'

interface EnqueueAnswer {
  readonly t: number
  readonly done: 'ok' | 'draining' | 'full' | 'apart'
  readonly added: string[] | null
  readonly again: string[]
  readonly lead: string | null
  readonly wake: number | null
}

/** The answers as their letters in the memory of calls. `?`: it is not decided yet. */
const letters = { a: 'added', d: 'duplicate', x: 'dead', p: 'replaced', f: 'full', r: 'draining' } as const

export class PostgresEnqueue {
  readonly #connection: PostgresConnection
  readonly #queues: PostgresQueues
  readonly #reports: PostgresReports

  constructor(connection: PostgresConnection, queues: PostgresQueues, reports: PostgresReports) {
    this.#connection = connection
    this.#queues = queues
    this.#reports = reports
  }

  /** See `Store.enqueue`. */
  async enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const queues = await this.#queues.named(calls.map(({ queue }) => queue))
    const answers = new Array<Enqueued[]>(calls.length)
    // A call that stands in the batch twice is carried out once.
    const firsts = new Map(calls.map(({ callId, queue }, i) => [`${callId} ${queue}`, i] as const).reverse())
    const isFirst = (i: number) => firsts.get(`${calls[i]!.callId} ${calls[i]!.queue}`) === i
    const groups = placesBy(calls, ({ isResent }, i) => (isResent ? `again ${i}` : String(queues[i]!.qid)))
    await Promise.all(
      groups.map(async (all) => {
        const places = all.filter(isFirst)
        if (places.length === 0) return
        const of = places.map((i) => calls[i]!)
        const isAgain = of[0]!.isResent === true
        const queue = queues[places[0]!]!
        const before = isAgain ? await this.#recalled(queue, of[0]!) : undefined
        const answered =
          before === undefined ? await this.#send(queue, of) : [await this.#decided(queue, of[0]!.jobs, before)]
        for (const [n, i] of places.entries()) answers[i] = answered[n]!
      }),
    )
    return calls.map((_, i) => answers[firsts.get(`${calls[i]!.callId} ${calls[i]!.queue}`)!]!)
  }

  /** The first answers to a call, as far as it was carried out; undefined: not at all. */
  async #recalled(queue: NumberedQueue, call: EnqueueCall): Promise<(Enqueued | undefined)[] | undefined> {
    const found = await this.#connection.call(recallCall, [queue.qid, call.callId, callMemoryMs, callMemoryCount])
    if (found === null) return undefined
    const [ids, counts, answers] = found as [string[], number[] | null, string | null]
    if (answers === null) return call.jobs.map(() => 'added')
    const at = ids.indexOf(call.callId)
    const start = (counts ?? []).slice(0, at).reduce((sum, count) => sum + count, 0)
    return call.jobs.map((_, i) => letters[answers[start + i] as keyof typeof letters])
  }

  /** Calls of one queue that were not sent before. */
  async #send(queue: NumberedQueue, calls: readonly EnqueueCall[]): Promise<Enqueued[][]> {
    const jobs = calls.flatMap((call) => call.jobs)
    const isNew = calls.every(({ hasNewIds }) => hasNewIds === true)
    const ids = calls.map(({ callId }) => callId)
    const counts = calls.map((call) => call.jobs.length)
    const answer = await this.#connection.call(enqueueJobs, [queue.qid, ...columnsOf(jobs), isNew, ids, counts])
    const { t, done, added, again, lead, wake } = answer as EnqueueAnswer
    if (done === 'apart') {
      const apart: Enqueued[][] = []
      for (const call of calls) apart.push(...(await this.#send(queue, [call])))
      return apart
    }
    if (done !== 'ok') return calls.map((call) => call.jobs.map(() => done))
    const left = new Set(added ?? [])
    const known = jobs.map(({ id }) =>
      added === null || left.delete(id) ? 'added' : again.includes(id) ? 'duplicate' : undefined,
    )
    const answers = await this.#decided(queue, jobs, known)
    const coming = jobs.filter((_, i) => answers[i] === 'added' || answers[i] === 'replaced')
    if (isCalling(coming, t, lead, wake)) this.#ring(queue, coming, t)
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
    for (const [i, job] of jobs.entries()) answers.push(known[i] ?? (await this.#decide(queue, job)))
    return answers
  }

  /** Looks at what has the id, and begins anew if that changes meanwhile. */
  async #decide(queue: NumberedQueue, job: NewJob): Promise<Enqueued> {
    for (;;) {
      const [now, deadAge, [row]] = (await this.#connection.call(takenIds, [queue.qid, [job.id]])) as TakenAnswer
      if (row === undefined) {
        const call = { callId: `again ${job.id}`, queue: queue.name, jobs: [job] }
        const again = await this.#connection.call(enqueueJobs, [
          queue.qid,
          ...columnsOf([job]),
          false,
          [call.callId],
          [1],
        ])
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
      const values = [queue.qid, ...columnsOf([placed]), row[1]]
      const [, outcome, told] = (await this.#connection.call(replaceJob, values)) as [
        now: number,
        outcome: 'ok' | 'full' | 'draining' | 'stale',
        told?: number | null,
      ]
      if (outcome === 'ok' && typeof told === 'number') await this.#reports.deliver(told)
      if (outcome === 'ok') return answer
      if (outcome !== 'stale') return outcome
    }
  }

  /** After the commit, as a statement of its own. Nobody waits for it: a lost ring is made up for by a look. */
  #ring({ qid }: NumberedQueue, jobs: readonly NewJob[], now: number): void {
    const isLater = jobs.every((job) => dueOf(job, now) > now)
    this.#connection.call(ringQueue, [qid, isLater]).catch(() => {})
  }
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
  const column = <T>(read: (job: NewJob) => T | undefined) => {
    const values = jobs.map((job) => read(job) ?? null)
    return values.some((value) => value !== null) ? values : null
  }
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
