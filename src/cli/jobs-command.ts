/** The command `jobs`: the records of jobs, as a list or one by one. */

import { type Command, Option } from 'commander'
import type { ListOptions } from '../client/queue-admin.js'
import type { Mill } from '../config/mill.js'
import { type JobRecord, type JobState, jobStates } from '../core/job.js'
import { OperationError, UsageError } from './exit-code.js'
import { wholeFlag } from './flags.js'
import { pageLines, type QueuePage } from './job-table.js'
import { type MillFlags, millCommand, withJson, withMill } from './mill-command.js'
import { printable, printableLines, shortened } from './printable.js'
import { jsonText, type Terminal } from './terminal.js'

export interface ListFlags extends MillFlags {
  readonly limit?: number
  readonly cursor?: string
}

const mostPerPage = 200
/** Longest value `jobs show` prints for people. */
const longestValue = 4_000

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('Look at jobs').helpCommand(false)
  const list = millCommand(jobs, 'list [queue]', 'List the jobs of a queue, or of all')
    .addOption(new Option('--state <state>', 'only jobs in this state').choices(jobStates))
    .addOption(
      new Option('--by <order>', 'time: as they will run, the latest ended last; retry: those that failed')
        .choices(['id', 'time', 'retry'])
        .default('time'),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace jobs list default --state running\n  $ millrace jobs list --by retry --json',
    )
  withPaging(list).action(
    (queue: string | undefined, flags: ListFlags & { state?: JobState; by: 'id' | 'time' | 'retry' }) =>
      listPages(queue, flags, (mill, name, paging) =>
        mill.queue(name).jobs.list({ ...paging, by: flags.by, ...(flags.state && { state: flags.state }) }),
      ),
  )
  const show = millCommand(jobs, 'show <id>', 'Show everything that is known of a job')
    .option('--queue <queue>', 'look in this queue only')
    .addHelpText('after', '\nExample:\n  $ millrace jobs show welcome-42 --queue default')
  withJson(show, 'print the job record').action((id: string, flags: MillFlags & { queue?: string }) =>
    withMill(flags, async (mill, terminal) => {
      const job = flags.queue === undefined ? await mill.job(id).record() : await mill.queue(flags.queue).jobs.get(id)
      if (job === undefined) {
        const where =
          flags.queue === undefined
            ? `any of the queues ${[...mill.queues.keys()].join(', ')}`
            : `queue '${flags.queue}'`
        throw new OperationError(
          `nothing is kept of a job '${id}' in ${where}: it ended without a kept result, or never was.`,
        )
      }
      terminal.print(job, () => recordLines(job, terminal))
    }),
  )
}

/** The options of every listing. */
export function withPaging(command: Command): Command {
  return withJson(
    command
      .option('--limit <n>', 'most jobs of one queue', wholeFlag(1, mostPerPage), 50)
      .option('--cursor <cursor>', 'go on where a page ended; needs the queue'),
    'print {"queues":[{"queue","jobs","cursor"}]}',
  )
}

/** Lists one queue, or all that are declared. */
export async function listPages(
  queue: string | undefined,
  flags: ListFlags,
  list: (mill: Mill, queue: string, paging: Pick<ListOptions, 'limit' | 'cursor'>) => Promise<Omit<QueuePage, 'queue'>>,
): Promise<void> {
  const { limit, cursor } = flags
  if (cursor !== undefined && queue === undefined)
    throw new UsageError('--cursor goes on in one queue: name the queue that the page was of.')
  await withMill(flags, async (mill, terminal) => {
    const names = queue === undefined ? [...mill.queues.keys()] : [mill.queue(queue).name]
    const paging = { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
    const pages = await Promise.all(names.map(async (name) => ({ queue: name, ...(await list(mill, name, paging)) })))
    terminal.print({ queues: pages }, () => pageLines(pages, terminal))
  })
}

function recordLines(job: JobRecord, { colors }: Terminal): string[] {
  const fields = Object.entries(job)
  const width = Math.max(...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => {
    // Below the first line, as far in as the first begins.
    const text = shownValue(value).replaceAll('\n', `\n${' '.repeat(width + 2)}`)
    return `${colors.dim(name.padEnd(width))}  ${text}`
  })
}

function shownValue(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'string') return shortened(jsonText(value, 2), longestValue)
  return shortened(value.includes('\n') ? printableLines(value) : printable(value), longestValue)
}
