/**
 * Record lines: one job for people, as `jobs show` and `morgue show` print it: its fields, then its payloads and its
 * log.
 */

import { linesOf } from '../../client/jobs/log-tail.js'
import type {
  FateCounts,
  JobHold,
  JobRecord,
  JoinPlace,
  JoinProgress,
  JoinSetProgress,
  PayloadRecord,
  StepRecord,
} from '../../core/job/job.js'
import type { JobFailure } from '../../core/job/job-failures.js'
import type { JobParent } from '../../core/job/job-origin.js'
import type { WaitReason } from '../../core/job/wait-reason.js'
import { defined } from '../../core/values/defined.js'
import { formatDuration } from '../../core/values/duration.js'
import { printable, printableLines, shortened } from '../printable.js'
import { count, counted, fromNow } from './figures.js'
import { logLines, progressWords } from './job-follower.js'
import { type Column, table } from './table.js'
import { jsonText, type Terminal } from './terminal.js'

/** The longest value that is printed for people. */
const longestValue = 4_000
const longestMeta = 40
/** The lines of a log that are printed unless all of it is wanted. */
const lastLines = 20

interface RecordView {
  /** Print the whole kept log. Default: its last lines. */
  readonly log?: boolean
  /** Why it has not begun. */
  readonly waits?: readonly WaitReason[]
}

/** The lines of a record. */
export function recordLines(job: JobRecord, terminal: Terminal, view: RecordView = {}): string[] {
  const { log: all = false, waits = [] } = view
  const {
    id,
    task,
    queue,
    state,
    payloads,
    payloadCount,
    pendingCount,
    priority,
    log,
    failures,
    parent,
    repeatOf,
    trace,
    schedule,
    join,
    steps,
    ...rest
  } = job
  const remarks = remarksOn(job, Date.now())
  // Ordered jobs have no input of their own.
  const fields = {
    ...{ id, task, queue, state },
    ...(waits.length > 0 && { 'waits because': waits.map(waitWords).join('\n') }),
    ...rest,
    ...(payloads === undefined && { priority }),
    ...defined({ parent: parent && relativeWords(parent), repeatOf: repeatOf && relativeWords(repeatOf) }),
    ...(schedule && { schedule: `${printable(schedule.name)}, tick of ${schedule.tickAt.toISOString()}` }),
    ...defined({ trace: trace?.traceparent }),
    ...(job.progress && { progress: progressWords(job) }),
    ...(job.held && { held: heldWords(job.held) }),
    ...(job.joins && { joins: job.joins.map(joinWords).join('\n') }),
    ...(join?.waitsUntil && { waitsUntil: join.waitsUntil }),
    ...(job.awaits && { awaits: awaitedWords(job.awaits) }),
  }
  return [
    ...fieldLines(fields, remarks, terminal),
    ...(failures && failures.length > 1 ? ['', ...failureLines(failures, terminal)] : []),
    ...(join === undefined ? [] : ['', ...memberLines(join, terminal)]),
    ...(steps === undefined ? [] : ['', ...stepLines(steps, terminal)]),
    ...(payloads === undefined ? [] : ['', ...payloadLines(payloads, job, terminal)]),
    ...(log === undefined || log === '' ? [] : ['', ...endOf(log, all, terminal)]),
  ]
}

function heldWords({ until }: JobHold): string {
  return until === undefined ? 'its group is paused' : `until ${until.toISOString()}`
}

function awaitedWords({ signal, until }: NonNullable<JobRecord['awaits']>): string {
  return `signal '${printable(signal)}'${until === undefined ? '' : ` until ${until.toISOString()}`}`
}

/** A job that waits for this one. */
function joinWords({ queue, id, set }: JoinPlace): string {
  return `${printable(id)} in ${printable(queue)}, as one of ${set}`
}

/** The sets of a job that waits for others, and how far they are. */
function memberLines({ sets }: JoinProgress, { colors, columns }: Terminal): string[] {
  if (sets.length === 0)
    return [colors.bold('waited for'), '  other jobs. It has ended, so these are no longer listed.']
  const figure = (title: keyof FateCounts): Column<JoinSetProgress> => ({
    title,
    align: 'right',
    cell: ({ counts }) => count(counts[title]),
  })
  const shown: Column<JoinSetProgress>[] = [
    { title: 'set', cell: ({ name }) => name },
    {
      title: 'done',
      align: 'right',
      cell: ({ done, size, added }) =>
        `${count(done)} of ${count(size ?? added)}${size === undefined ? ' so far' : ''}`,
    },
    ...(['completed', 'dead', 'cancelled', 'expired'] as const).map(figure),
    { title: 'if one does not complete', cell: ({ onDead }) => onDead },
    {
      title: 'oldest that it waits for',
      cell: ({ oldest, queue }) => (oldest === undefined ? '-' : `${oldest} in ${queue}`),
    },
  ]
  return [
    colors.bold('waits for'),
    ...table(shown, sets, { width: columns - 2, paintTitle: colors.dim }).map((line) => `  ${line}`),
  ]
}

/** A reason, and the jobs that run instead, if it is one of a limit. */
function waitWords({ why, text, jobs = [] }: WaitReason): string {
  if (why !== 'max-running' && why !== 'exclusive') return printable(text)
  return `${printable(text)}: ${jobs.map(({ id }) => printable(id)).join(', ')}`
}

/** The steps, sleeps and signals of a job, a row each. */
function stepLines(steps: readonly StepRecord[], { colors, columns }: Terminal): string[] {
  const now = Date.now()
  const shown: Column<StepRecord>[] = [
    { title: 'name', most: longestMeta, cell: ({ name }) => name },
    { title: 'kind', cell: ({ kind }) => (kind === 'timeout' ? 'no signal came' : kind) },
    { title: 'stored', cell: ({ at }) => fromNow(at, now) },
    {
      title: 'result or data',
      most: longestValue,
      cell: ({ value, until }) =>
        until !== undefined ? `until ${until.toISOString()}` : value === undefined ? '-' : jsonText(value),
    },
  ]
  const lines = table(shown, steps, { width: columns - 2, paintTitle: colors.dim })
  return [colors.bold(`steps and signals: ${count(steps.length)}`), ...lines.map((line) => `  ${line}`)]
}

/** The fields of a record, each with its value and a remark after it. */
export function fieldLines(record: object, remarks: Readonly<Record<string, string>>, { colors }: Terminal): string[] {
  const fields = Object.entries(record)
  const width = Math.max(...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => {
    // Further lines are indented like the first.
    const text = shownValue(value).replaceAll('\n', `\n${' '.repeat(width + 2)}`)
    const remark = remarks[name]
    return `${colors.dim(name.padEnd(width))}  ${text}${remark === undefined ? '' : colors.dim(`  ${remark}`)}`
  })
}

/** Remarks on the instants of a job: how long it waits, waited and ran. */
function remarksOn(job: JobRecord, now: number): Partial<Record<keyof JobRecord, string>> {
  const { state, reason, attempt, createdAt, updatedAt, runAt, waitedUntil, expiresAt, startedAt, finishedAt, awaits } =
    job
  const isRunning = state === 'running'
  const [ableAt, wasAble] = waitedUntil === undefined ? [runAt, 'it was due'] : [waitedUntil, 'its wait was over']
  // A start before that is from an earlier run.
  const begun = startedAt !== undefined && startedAt >= ableAt ? startedAt : undefined
  return {
    ...(isRunning && startedAt === undefined && { state: 'reserved: its handler has not begun' }),
    ...(reason === 'max-retries' && { attempt: 'the last: none is left' }),
    ...(reason !== 'max-retries' && attempt > 1 && { attempt: `after ${counted(attempt - 1, 'failure')}` }),
    createdAt: fromNow(createdAt, now),
    ...(isRunning && { updatedAt: fromNow(updatedAt, now) }),
    ...(state === 'scheduled' && { runAt: `${attempt > 1 ? `attempt ${attempt} is due ` : ''}${fromNow(runAt, now)}` }),
    ...(state === 'waiting' && {
      state:
        awaits === undefined
          ? `for other jobs, for ${span(createdAt, now)}`
          : `for a signal, for ${span(updatedAt, now)}`,
    }),
    ...(state === 'waiting' && awaits?.until && { awaits: fromNow(awaits.until, now) }),
    ...(state === 'ready' && {
      [waitedUntil === undefined ? 'runAt' : 'waitedUntil']: `waits for ${span(ableAt, now)}`,
    }),
    ...(expiresAt && {
      expiresAt:
        Number(expiresAt) > now
          ? fromNow(expiresAt, now)
          : isRunning
            ? 'over: it does not begin again'
            : 'over: the next claim on its queue cancels it',
    }),
    ...(begun && {
      startedAt: `${span(ableAt, begun)} after ${wasAble}${isRunning ? `, runs for ${span(begun, now)}` : ''}`,
    }),
    ...(startedAt && finishedAt && { finishedAt: `ran for ${span(startedAt, finishedAt)}` }),
  }
}

/** Never negative, even if the clocks of two machines differ. */
function span(from: Date, to: Date | number): string {
  return formatDuration(Math.max(0, Number(to) - Number(from)))
}

function endOf(log: string, all: boolean, { colors }: Terminal): string[] {
  const lines = linesOf(log)
  const shown = all ? lines : lines.slice(-lastLines).map((line) => shortened(line, longestValue))
  const more = shown.length < lines.length ? `, the last ${shown.length}; \`--log\` prints all` : ''
  return [`${colors.bold(`log: ${counted(lines.length, 'line')}`)}${more}`, ...logLines(shown.join('\n'))]
}

/** The latest error is a field of the record already. */
function failureLines(failures: readonly JobFailure[], { colors, columns }: Terminal): string[] {
  const now = Date.now()
  const shown: Column<JobFailure>[] = [
    { title: 'attempt', align: 'right', cell: ({ attempt }) => String(attempt) },
    { title: 'failed', cell: ({ at }) => fromNow(at, now) },
    { title: 'error', most: longestValue, cell: ({ error }) => error.split('\n', 1)[0]! },
  ]
  const lines = table(shown, failures, { width: columns - 2, paintTitle: colors.dim })
  return [colors.bold('failures, old to new'), ...lines.map((line) => `  ${line}`)]
}

function payloadLines(
  payloads: readonly PayloadRecord[],
  { payloadCount = payloads.length, pendingCount = 0 }: Pick<Partial<JobRecord>, 'payloadCount' | 'pendingCount'>,
  { colors, columns }: Terminal,
): string[] {
  const shown: Column<PayloadRecord>[] = [
    { title: 'score', align: 'right', cell: ({ score }) => String(score) },
    ...(payloads.some(({ meta }) => meta !== undefined)
      ? [{ title: 'meta', most: longestMeta, cell: ({ meta }: PayloadRecord) => (meta ? jsonText(meta) : '') }]
      : []),
    ...(payloads.some(({ parent }) => parent !== undefined)
      ? [{ title: 'parent', cell: ({ parent }: PayloadRecord) => (parent ? relativeWords(parent) : '') }]
      : []),
    {
      title: 'input',
      most: longestValue,
      cell: (payload) => ('input' in payload ? jsonText(payload.input) : '(cannot be decoded)'),
    },
  ]
  const more = payloadCount - payloads.length
  return [
    `${colors.bold(`payloads: ${count(payloadCount)}`)}, old to new${pendingCount > 0 ? `; ${count(pendingCount)} more wait for the end of this run` : ''}`,
    ...table(shown, payloads, { width: columns - 2, paintTitle: colors.dim }).map((line) => `  ${line}`),
    ...(more > 0 ? [colors.dim(`  and ${count(more)} newer ones`)] : []),
  ]
}

/** Another job, with its id first, since `jobs show` takes that. */
function relativeWords({ id, task, queue }: JobParent): string {
  return `${id} (${task}, in ${queue})`
}

function shownValue(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'string') return shortened(jsonText(value, 2), longestValue)
  return shortened(value.includes('\n') ? printableLines(value) : printable(value), longestValue)
}
