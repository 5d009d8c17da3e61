/** The job table: pages of job records, for `jobs list` and `morgue list`. */

import type { JobPage } from '../../client/admin/job-listing.js'
import type { JobRecord, JobState } from '../../core/job.js'
import { formatDuration } from '../../core/values/duration.js'
import { count, counted, fromNow } from './figures.js'
import { printable } from './printable.js'
import { type Column, table } from './table.js'
import type { Terminal } from './terminal.js'

export interface QueuePage extends JobPage {
  readonly queue: string
}

/** The longest id on a terminal. Elsewhere ids are never cut: they are copied, and read by programs. */
const longestId = 60
/** The longest note if no terminal limits the line. */
const longestNote = 100

/** The pages, each under the name of its queue. */
export function pageLines(pages: readonly QueuePage[], terminal: Terminal): string[] {
  const { colors } = terminal
  return pages.flatMap(({ queue, jobs, cursor }, i) => [
    ...(i > 0 ? [''] : []),
    `${colors.bold(queue)}${jobs.length === 0 ? ': none' : ''}`,
    ...(jobs.length === 0 ? [] : jobLines(jobs, terminal)),
    ...(cursor === undefined ? [] : [colors.dim(`more: ${queue} --cursor ${printable(cursor)}`)]),
  ])
}

function jobLines(jobs: readonly JobRecord[], { colors, columns }: Terminal): string[] {
  const now = Date.now()
  const paints: Readonly<Partial<Record<JobState, (text: string) => string>>> = {
    running: colors.green,
    dead: colors.red,
    scheduled: colors.cyan,
  }
  const shown: Column<JobRecord>[] = [
    { title: 'id', ...(columns !== undefined && { most: longestId }), cell: ({ id }) => printable(id) },
    { title: 'task', most: 30, cell: ({ task }) => printable(task) },
    { title: 'state', cell: ({ state }) => state, paint: (text, { state }) => paints[state]?.(text) ?? text },
    { title: 'attempt', align: 'right', cell: ({ attempt }) => String(attempt) },
    jobs.some(({ payloadCount }) => payloadCount !== undefined)
      ? { title: 'payloads', align: 'right', cell: payloadsOf }
      : { title: 'priority', align: 'right', cell: ({ priority }) => String(priority) },
    { title: 'when', cell: (job) => momentOf(job, now) },
    { title: 'note', most: longestNote, cell: noteOf },
  ]
  return table(shown, jobs, { width: columns, paintTitle: colors.dim })
}

/** The payloads in hand or waiting; plus those that wait while the job runs. */
function payloadsOf({ payloadCount = 0, pendingCount = 0 }: JobRecord): string {
  return `${count(payloadCount)}${pendingCount > 0 ? ` +${count(pendingCount)}` : ''}`
}

/** The moment that matters in its state. */
function momentOf({ state, runAt, startedAt, finishedAt, updatedAt }: JobRecord, now: number): string {
  switch (state) {
    case 'scheduled':
      return `due ${fromNow(runAt, now)}`
    case 'ready':
      return `waits ${formatDuration(Math.max(0, now - runAt.getTime()))}`
    case 'running':
      return startedAt === undefined ? 'reserved' : `for ${formatDuration(Math.max(0, now - startedAt.getTime()))}`
    default:
      return fromNow(finishedAt ?? updatedAt, now)
  }
}

/**
 * The most telling line of an error. For a failed command or process it is the last printed line. It comes first,
 * because lines are cut.
 */
function errorLine(error: string | undefined): string | undefined {
  const [first, ...rest] = error?.split('\n') ?? []
  if (!first?.endsWith('The last that it printed:')) return first
  const end = rest.findIndex((line) => /^\s+at /.test(line))
  const printed = (end === -1 ? rest : rest.slice(0, end)).findLast((line) => line.trim() !== '')
  return printed === undefined
    ? first
    : `${printed.trim()} (${first.replace(/^\w+: | The last that it printed:$/g, '').replace(/\.$/, '')})`
}

/** The note for people: the progress, the reason of death, the error, and the fields. */
function noteOf({ state, reason, error, progress, suspect, crashes, fields = {} }: JobRecord): string {
  const percent = progress === undefined ? undefined : `${Math.round(progress.fraction * 100)}%`
  const parts = state === 'running' ? [percent, progress?.note] : [reason, errorLine(error)]
  const suspicion = suspect ? `suspect${crashes > 0 ? ` (${counted(crashes, 'crash', 'crashes')})` : ''}` : undefined
  const marks = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
  return [suspicion, ...parts, ...marks]
    .filter((part) => part !== undefined)
    .map(printable)
    .join(' · ')
}
