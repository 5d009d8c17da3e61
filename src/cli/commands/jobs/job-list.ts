/** Job lists: their options, and the pages of job records that they print, for `jobs list` and `morgue list`. */

import type { Command } from 'commander'
import type { ListFilter } from '../../../client/admin/job-filter.js'
import type { JobPage, ListOptions } from '../../../client/admin/queue-looks.js'
import { explained } from '../../../client/jobs/wait-facts.js'
import type { JobRecord, JobState } from '../../../core/job/job.js'
import type { WaitReason } from '../../../core/job/wait-reason.js'
import { formatDuration } from '../../../core/values/duration.js'
import type { Mill } from '../../../mill/mill.js'
import { namedTask } from '../../../mill/named-task.js'
import { wholeFlag } from '../../flags.js'
import { type MillFlags, withJson, withMill } from '../../mill-command.js'
import { printable } from '../../printable.js'
import { UsageError } from '../../process/exit-code.js'
import { count, counted, fromNow } from '../../terminal/figures.js'
import { type Column, table } from '../../terminal/table.js'
import type { Terminal } from '../../terminal/terminal.js'
import { type FilterFlags, listFilterIn, withFilter } from './filter-flags.js'

export interface ListFlags extends MillFlags, FilterFlags {
  readonly task?: string
  readonly limit?: number
  readonly cursor?: string
}

/** `waits`: why it has not begun. */
type ListedJob = JobRecord & { readonly waits?: readonly WaitReason[] }

export interface QueuePage extends Pick<JobPage, 'cursor'> {
  readonly queue: string
  readonly jobs: readonly ListedJob[]
}

const mostPerPage = 200

/** The options of every listing. */
export function withPaging(command: Command): Command {
  return withJson(
    withFilter(command.option('--task <task>', 'only jobs of this task'))
      .option('--limit <n>', 'the most jobs of one queue', wholeFlag(1, mostPerPage), 50)
      .option('--cursor <cursor>', 'continue where a page ended; needs the queue'),
    'print {"queues":[{"queue","jobs","cursor"}]}',
  )
}

/**
 * Lists one queue, or all declared ones. A page of the jobs of one task, group or error holds those among `--limit` jobs; pages without any
 * are passed over.
 */
export async function listPages(
  queue: string | undefined,
  flags: ListFlags,
  list: (
    mill: Mill,
    queue: string,
    paging: Pick<ListOptions, 'task' | 'limit' | 'cursor'> & ListFilter,
  ) => Promise<JobPage>,
): Promise<void> {
  const { limit, cursor, task: taskName } = flags
  if (cursor !== undefined && queue === undefined)
    throw new UsageError('--cursor goes on in one queue: name the queue that the page was of.')
  await withMill(flags, async (mill, terminal) => {
    const names = queue === undefined ? [...mill.queues.keys()] : [mill.queue(queue).name]
    const filter = listFilterIn(flags)
    const firstPage = async (name: string): Promise<QueuePage> => {
      const task = taskName === undefined ? undefined : namedTask(mill, taskName, name)
      let page = await list(mill, name, { task, limit, cursor, ...filter })
      while (page.jobs.length === 0 && page.cursor !== undefined)
        page = await list(mill, name, { task, limit, cursor: page.cursor, ...filter })
      const waits = await explained(await mill.adminParts.look(), name, page.jobs, Date.now())
      return {
        queue: name,
        ...page,
        jobs: page.jobs.map((job, i) => (waits[i]!.length > 0 ? { ...job, waits: waits[i]! } : job)),
      }
    }
    const pages = await Promise.all(names.map(firstPage))
    terminal.print({ queues: pages }, () => pageLines(pages, terminal))
  })
}

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

/** The longest id on a terminal. Elsewhere ids are never cut: they are copied, and read by programs. */
const longestId = 60
/** The longest note if no terminal limits the line. */
const longestNote = 100

function jobLines(jobs: readonly ListedJob[], { colors, columns }: Terminal): string[] {
  const now = Date.now()
  const paints: Readonly<Partial<Record<JobState, (text: string) => string>>> = {
    running: colors.green,
    dead: colors.red,
    scheduled: colors.cyan,
    waiting: colors.cyan,
  }
  const shown: Column<ListedJob>[] = [
    { title: 'id', ...(columns !== undefined && { most: longestId }), cell: ({ id }) => id },
    { title: 'task', most: 30, cell: ({ task }) => task },
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
function momentOf(job: JobRecord, now: number): string {
  const { state, createdAt, runAt, waitedUntil = runAt, startedAt, finishedAt, updatedAt, awaits } = job
  switch (state) {
    case 'scheduled':
      return `due ${fromNow(runAt, now)}`
    case 'waiting':
      return `waits ${formatDuration(Math.max(0, now - (awaits === undefined ? createdAt : updatedAt).getTime()))}`
    case 'ready':
      return `waits ${formatDuration(Math.max(0, now - waitedUntil.getTime()))}`
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

/** The reasons that a list shows in another column, or that `jobs show` alone gives. */
const shownElsewhere: readonly WaitReason['why'][] = ['delayed', 'retry', 'signal', 'suspect', 'slots-full', 'reserved']

/** The reason in few words: \`jobs show\` has all. */
function waitNote(waits: readonly WaitReason[], now: number): string | undefined {
  const wait = waits.find(({ why }) => !shownElsewhere.includes(why))
  if (wait === undefined) return undefined
  const forMs = wait.until && Math.max(0, wait.until.getTime() - now)
  return `${wait.why.replace('-', ' ')}${forMs === undefined ? '' : ` for ${formatDuration(forMs)}`}`
}

/** The note for people: why it waits, the progress, the reason of death, the error, and the fields. */
function noteOf({
  state,
  reason,
  error,
  progress,
  suspect,
  crashes,
  awaits,
  waits = [],
  fields = {},
}: ListedJob): string {
  const percent = progress === undefined ? undefined : `${Math.round(progress.fraction * 100)}%`
  const parts = state === 'running' ? [percent, progress?.note] : [reason, errorLine(error)]
  const suspicion = suspect ? `suspect${crashes > 0 ? ` (${counted(crashes, 'crash', 'crashes')})` : ''}` : undefined
  const marks = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
  const wait = waitNote(waits, Date.now())
  return [awaits && `for signal '${awaits.signal}'`, suspicion, wait, ...parts, ...marks]
    .filter((part) => part !== undefined)
    .join(' · ')
}
