/**
 * A bare call of an enqueue: a call whose jobs have nothing special, as text. One statement inserts all of them from this
 * text, and no job is copied for the other thread as an object. Members of one set of a join, one after the other, are bare
 * too: nearly all members are such.
 */

import type { EnqueueCall, Enqueued, NewJob } from '../../contract/new-job.js'
import type { MemberOf } from '../../contract/new-join.js'
import { fromStored, toStored } from '../../rows/stored-text.js'
import { weightOf } from '../../rules/claim-weight.js'

/** A call of `Store.enqueue`, or one without an id, which is never sent again. */
export interface SqliteEnqueueCall extends Omit<EnqueueCall, 'callId'> {
  readonly callId: string | undefined
}

/** A call of a graph. */
export interface SqliteGraphCall extends EnqueueCall {
  /** Members, which come behind its jobs. */
  readonly runs?: readonly BareCall[]
}

export interface BareCall extends Omit<SqliteEnqueueCall, 'jobs'> {
  /** Each job was enqueued by a call of its own, which has the id of the job. */
  readonly isRun?: true
  /** JSON: a `BareRow` for each job. */
  readonly rows: string
  /** What all jobs have in common. Absent if they differ in it: then each row has it. */
  readonly kind?: BareKind
  /** The number of jobs. */
  readonly count: number
  /** The UTF-16 units of all payloads. */
  readonly units: number
  /** The weight of the heaviest job, in bytes. */
  readonly heaviest: number
}

interface BareKind {
  readonly task: string
  readonly rememberMs: number
  readonly members?: BareMembers
}

/** Members of one set, with numbers from that of the first one on. */
export interface BareMembers {
  readonly first: MemberOf
  /** What their ids have before the numbers. */
  readonly ids: string
}

type BareRow = readonly [id: string, payload: string, task?: string, rememberMs?: number]
type BareJob = NewJob & { readonly payload: string }

/** The jobs of a smaller call are inserted one by one: a text of them all would cost more. */
const fewestTogether = 4
const longestTogether = 2_048

/** The calls in the form in which they are sent to the thread, and a function that gives each its answers. */
export function sentForm(calls: readonly EnqueueCall[]): {
  readonly sent: readonly (EnqueueCall | BareCall)[]
  readonly answersOf: (answers: Enqueued[][]) => Enqueued[][]
} {
  const run = runOf(calls)
  if (run === undefined) return { sent: calls.map((call) => bareOf(call) ?? call), answersOf: (answers) => answers }
  return { sent: [run], answersOf: ([answers]) => answers!.map((answer) => [answer]) }
}

/** The calls as one, if each has one job, which is bare and has an id that was made for it. */
function runOf(calls: readonly EnqueueCall[]): BareCall | undefined {
  const [first] = calls
  if (calls.length < fewestTogether || first === undefined) return undefined
  const isOfRun = ({ callId, isResent, queue, jobs }: EnqueueCall) =>
    jobs.length === 1 && jobs[0]!.id === callId && !isResent && queue === first.queue
  if (!calls.every(isOfRun)) return undefined
  const jobs = calls.map((call) => call.jobs[0]!)
  const bare = bareOf({ callId: undefined, hasNewIds: true, queue: first.queue, jobs })
  return bare && { ...bare, isRun: true }
}

/** The call as text; undefined if it is small or one of its jobs is not bare. */
export function bareOf({ jobs, ...call }: SqliteEnqueueCall): BareCall | undefined {
  if (jobs.length < fewestTogether || !jobs.every(isBare)) return undefined
  const [{ id, task, rememberMs, memberOf }] = jobs as readonly BareJob[] as [BareJob]
  const areAlike = jobs.every((job) => job.task === task && job.rememberMs === rememberMs)
  const areMembers = jobs.some((job) => job.memberOf !== undefined)
  if (areMembers && !jobs.every((job, i) => i === 0 || follows(jobs[i - 1]!, job))) return undefined
  const members = areMembers && { members: { first: memberOf![0]!, ids: beforeNumber(id, memberOf![0]!) } }
  const rows: BareRow[] = []
  let [units, heaviest] = [0, 0]
  for (const job of jobs) {
    units += job.payload.length
    heaviest = Math.max(heaviest, weightOf(job))
    const stored = toStored(job.payload)
    rows.push(areAlike ? [job.id, stored] : [job.id, stored, job.task, job.rememberMs])
  }
  return {
    ...call,
    ...(areAlike && { kind: { task, rememberMs, ...members } }),
    rows: JSON.stringify(rows),
    count: rows.length,
    units,
    heaviest,
  }
}

/** The call with its last jobs as text, as far as they are members. */
export function graphCallOf(call: EnqueueCall): SqliteGraphCall {
  const { jobs, queue } = call
  const runs: BareCall[] = []
  let end = jobs.length
  while (call.hasNewIds && end > 0) {
    let from = end - 1
    while (from > 0 && isBare(jobs[from - 1]!) && follows(jobs[from - 1]!, jobs[from]!)) from -= 1
    const run = bareOf({ callId: undefined, hasNewIds: true, queue, jobs: jobs.slice(from, end) })
    if (run?.kind?.members === undefined) break
    runs.unshift(run)
    end = from
  }
  return runs.length === 0 ? call : { ...call, jobs: jobs.slice(0, end), runs }
}

/** Whether it is like the other one, and the member behind it, as its id says too. */
function follows(before: NewJob, job: NewJob): boolean {
  if (job.task !== before.task || job.rememberMs !== before.rememberMs) return false
  const [[one], [next]] = [before.memberOf ?? [], job.memberOf ?? []]
  if (one === undefined || next === undefined || next.number !== one.number + 1) return false
  const isOfJoin = one.join.id === next.join.id && one.join.queue === next.join.queue
  const isOfSet =
    isOfJoin && one.set === next.set && one.onDead === next.onDead && one.keepsResults === next.keepsResults
  const ids = beforeNumber(before.id, one)
  return isOfSet && ids.endsWith('.') && before.id === `${ids}${one.number}` && job.id === `${ids}${next.number}`
}

function beforeNumber(id: string, { number }: MemberOf): string {
  return id.slice(0, -String(number).length)
}

export function jobsOf(call: SqliteEnqueueCall | BareCall): readonly NewJob[] {
  if ('jobs' in call) return call.jobs
  const first = call.kind?.members?.first
  return (JSON.parse(call.rows) as BareRow[]).map(([id, payload, task, rememberMs], i) => ({
    ...{ id, payload: fromStored(payload), priority: 0 },
    ...{ task: call.kind?.task ?? task!, rememberMs: call.kind?.rememberMs ?? rememberMs! },
    ...(first && { memberOf: [{ ...first, number: first.number + i }] }),
  }))
}

/**
 * Whether the job is ready at once, has no group, the default priority and nothing else special, but for one place as a
 * member, and has a short payload that JSON carries unchanged.
 */
function isBare(job: NewJob): job is BareJob {
  const { task, payload, priority, codec, meta, group = '', score, arrival, delayMs, runAt, expiresMs, ifWaiting } = job
  if (job.join !== undefined || job.fields !== undefined || job.reportsDeath) return false
  if (job.memberOf !== undefined && job.memberOf.length !== 1) return false
  const isReady = !delayMs && runAt === undefined && expiresMs === undefined && ifWaiting === undefined
  const hasNoPlace = priority === 0 && score === undefined && arrival === undefined
  const hasNothing = hasNoPlace && codec === undefined && meta === undefined && group === ''
  if (!isReady || !hasNothing || typeof payload !== 'string' || payload.length > longestTogether) return false
  return payload.isWellFormed() && task.isWellFormed()
}
