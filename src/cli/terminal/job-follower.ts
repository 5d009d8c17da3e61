/** A job follower: prints the changes of a job (its state, its progress, its log) as lines or as records. */

import { linesOf, newIn } from '../../client/jobs/log-tail.js'
import { isEndState, type JobRecord } from '../../core/job/job.js'
import { formatDuration } from '../../core/values/duration.js'
import { printable } from '../printable.js'
import { timeOfDay } from './figures.js'
import type { Terminal } from './terminal.js'

export class JobFollower {
  readonly #terminal: Terminal
  #job: JobRecord
  /** A line that has not ended yet. */
  #begun = ''

  /** `job`: as it was last shown, with its log. */
  constructor(job: JobRecord, terminal: Terminal) {
    this.#job = job
    this.#terminal = terminal
  }

  /** Prints the changes. With `--json` it prints the record, whose log is only the new part. */
  tell(job: JobRecord): void {
    const before = this.#job
    this.#job = job
    // After the end of a job its log may no longer be kept.
    const { text, isGap } = job.log === undefined ? { text: '', isGap: false } : newIn(before.log ?? '', job.log)
    const changed = (of: (job: JobRecord) => string) => (of(job) === of(before) || of(job) === '' ? [] : [of(job)])
    const [stands, progress] = [changed(standing), changed(progressWords)]
    if (text === '' && stands.length + progress.length === 0) return
    const isOver = isEndState(job.state)
    const { log: _, ...rest } = job
    this.#terminal.print(text === '' ? rest : { ...rest, log: text }, () => [
      ...(isOver ? [] : this.#lines(stands)),
      ...(isGap ? [this.#terminal.colors.dim('  … more was logged meanwhile than is kept')] : []),
      ...this.#logLines(text, isOver),
      ...this.#lines(progress),
      ...(isOver ? this.#lines(stands) : []),
    ])
  }

  #logLines(text: string, isLast: boolean): string[] {
    const all = this.#begun + text
    const end = isLast ? all.length : all.lastIndexOf('\n') + 1
    this.#begun = all.slice(end)
    return logLines(all.slice(0, end))
  }

  #lines(said: readonly string[]): string[] {
    return said.map((words) => `${this.#terminal.colors.dim(timeOfDay(new Date()))} ${words}`)
  }
}

/** The log as lines that are indented more than all others. */
export function logLines(text: string): string[] {
  return linesOf(text).map((line) => `  ${printable(line.replace(/\r$/, ''))}`)
}

/** The state of a job, as one line. */
export function standing(job: JobRecord): string {
  const { state, attempt, host, pid, startedAt, finishedAt, runAt, reason } = job
  const why = reason === undefined ? '' : ` (${printable(reason)})`
  const ranMs = startedAt && finishedAt && Math.max(0, finishedAt.getTime() - startedAt.getTime())
  switch (state) {
    case 'scheduled':
      return `scheduled: attempt ${attempt}, due at ${runAt.toISOString()}`
    case 'waiting':
      return job.awaits === undefined
        ? 'waiting for other jobs'
        : `waiting for signal '${printable(job.awaits.signal)}'`
    case 'ready':
      return `ready: attempt ${attempt}`
    case 'running':
      if (startedAt === undefined) return `reserved: attempt ${attempt}`
      return `running: attempt ${attempt}${host === undefined ? '' : `, on ${printable(host)}, pid ${pid}`}`
    default:
      return `${state}${why}${ranMs === undefined ? '' : ` after ${formatDuration(ranMs)}`}`
  }
}

/** The progress and its note; empty if there is none. */
export function progressWords({ progress }: JobRecord): string {
  if (progress === undefined) return ''
  const { fraction, note } = progress
  return `${Math.round(fraction * 100)}%${note === undefined ? '' : ` ${printable(note)}`}`
}
