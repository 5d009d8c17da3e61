/** The timeline steps: the past and future steps of a job, and how long each part took. Pure. */

import type { JobState, WaitReason } from '../../api/answers.js'
import { diedOfFailure, failuresOf } from '../../api/answers.js'
import { durationWords } from '../../words/duration-words.js'
import { hasEnded, type JobDetail } from './job-detail.js'

export interface TimelineStep {
  readonly name: string
  /** ISO 8601; absent if unknown. */
  readonly at?: string
  readonly note?: string
  readonly isReached: boolean
  readonly tone: 'accent' | 'good' | 'warn' | 'bad' | 'plain'
}

export interface TimelineSpan {
  /**
   * `put off`: from the last failure until it was due again, as its back-off or a snooze said. `waited and ran`: it is not
   * stored when it began, as of a short job.
   */
  readonly name: 'earlier attempts' | 'put off' | 'delayed' | 'waited' | 'waited and ran' | 'ran'
  readonly ms: number
}

/** A smaller difference is invisible. */
const noticeableMs = 1_000

export function stepsOf(job: JobDetail, now: number): readonly TimelineStep[] {
  return [
    { name: 'Enqueued', at: job.createdAt, isReached: true, tone: 'plain' },
    ...dueSteps(job, now),
    ...startSteps(job),
    endStep(job),
  ]
}

function dueSteps(job: JobDetail, now: number): readonly TimelineStep[] {
  const { attempt, crashes, createdAt, runAt, suspect, state } = job
  // Of a dead job its end says how often it failed.
  const failures = state === 'dead' ? 0 : failuresOf(job)
  const isLater = Date.parse(runAt) - Date.parse(createdAt) > noticeableMs
  if (failures === 0 && crashes === 0 && !isLater) return []
  const notes = [
    ...(failures > 0 ? [`failed ${timesWords(failures)}`] : []),
    ...(crashes > 0 ? [`its worker died ${timesWords(crashes)}`] : []),
    ...(suspect ? ['runs alone, as a suspect'] : []),
  ]
  const name = failures > 0 || crashes > 0 ? `Attempt ${attempt} due` : 'Due'
  const isReached = hasEnded(job.state) || Date.parse(runAt) <= now
  return [
    {
      name,
      at: runAt,
      isReached,
      tone: failures > 0 || crashes > 0 ? 'warn' : 'plain',
      ...(notes.length > 0 && { note: notes.join(', ') }),
    },
  ]
}

const startWords: Readonly<Partial<Record<JobState, string>>> = {
  ready: 'when a worker is free',
  waiting: 'when the jobs that it waits for have ended',
}

function startSteps({ state, startedAt, attempt, awaits, waits: [wait] = [] }: JobDetail): readonly TimelineStep[] {
  if (startedAt !== undefined) {
    const note = state === 'dead' ? 'for the last time' : `attempt ${attempt}`
    return [{ name: 'Started', at: startedAt, note, isReached: true, tone: 'accent' }]
  }
  if (state === 'running')
    return [{ name: 'Reserved', note: 'a worker has it; its handler has not begun', isReached: true, tone: 'accent' }]
  return hasEnded(state)
    ? []
    : [
        {
          name: awaits === undefined ? 'Start' : 'Goes on',
          note: awaits === undefined ? startNote(state, wait) : `when signal '${awaits.signal}' has come`,
          isReached: false,
          tone: 'plain',
        },
      ]
}

/** When it begins, unless something must happen first, which is told above the timeline. */
function startNote(state: JobState, wait: WaitReason | undefined): string {
  const isKept = state === 'ready' && wait !== undefined && !['next', 'behind', 'slots-full'].includes(wait.why)
  return isKept ? 'when nothing keeps it any more' : (startWords[state] ?? 'when it is due')
}

const endings = {
  completed: ['Completed', 'good'],
  dead: ['Died', 'bad'],
  cancelled: ['Cancelled', 'plain'],
} as const

function endStep(job: JobDetail): TimelineStep {
  const { state, finishedAt, updatedAt, reason, progress, expiresAt } = job
  if (state === 'completed' || state === 'dead' || state === 'cancelled') {
    const [name, tone] = endings[state]
    const failures = state === 'dead' ? failuresOf(job) : 0
    const failed = failures > 0 ? `failed ${timesWords(failures)}` : undefined
    const note = [reason, failed].filter((word) => word !== undefined).join(', ')
    return { name, at: finishedAt ?? updatedAt, isReached: true, tone, ...(note !== '' && { note }) }
  }
  if (expiresAt !== undefined && state !== 'running')
    return { name: 'Expires', at: expiresAt, note: 'if it has not begun by then', isReached: false, tone: 'warn' }
  const share = progress && `${Math.round(progress.fraction * 100)} % done`
  return { name: 'End', isReached: false, tone: 'plain', ...(share !== undefined && { note: share }) }
}

/** The parts of its life so far, in their order, without those too short to be seen. */
export function spansOf(job: JobDetail, now: number): readonly TimelineSpan[] {
  const created = Date.parse(job.createdAt)
  const due = Math.max(created, Date.parse(job.runAt))
  const end = hasEnded(job.state) ? Date.parse(job.finishedAt ?? job.updatedAt) : now
  const hasBegun = job.startedAt !== undefined && (job.state === 'running' || hasEnded(job.state))
  const begin = hasBegun ? Date.parse(job.startedAt!) : end
  const spans: TimelineSpan[] = [
    ...spansBefore(job, created, Math.min(due, begin), begin),
    { name: job.startedAt === undefined && hasRun(job) ? 'waited and ran' : 'waited', ms: begin - due },
    { name: 'ran', ms: end - begin },
  ]
  return spans.filter(({ ms }) => ms > 0)
}

/** From `created` until the attempt that began at `begin` was due. */
function spansBefore(job: JobDetail, created: number, due: number, begin: number): readonly TimelineSpan[] {
  const { attempt, failures = [] } = job
  const failedBefore = attempt > 1
  const before = failures.filter((failure) => failure.attempt < attempt)
  const failed = before.map(({ at }) => Date.parse(at)).filter((at) => at <= begin)
  const [last] = failed.slice(-1)
  if (!failedBefore || last === undefined)
    return [{ name: failedBefore ? 'earlier attempts' : 'delayed', ms: due - created }]
  return [
    { name: 'earlier attempts', ms: last - created },
    { name: 'put off', ms: due - last },
  ]
}

function hasRun(job: JobDetail): boolean {
  return job.state === 'completed' || diedOfFailure(job)
}

export function spanWords({ name, ms }: TimelineSpan): string {
  return `${name} ${durationWords(ms)}`
}

function timesWords(count: number): string {
  return count === 1 ? 'once' : count === 2 ? 'twice' : `${count} times`
}
