/** The command `jobs`: the records of jobs, as a list or one by one, and an operator's actions on jobs. */

import { type Command, InvalidArgumentError, Option } from 'commander'
import type { JobPage, ListOptions } from '../../../client/admin/job-listing.js'
import type { QueueAdmin } from '../../../client/admin/queue-admin.js'
import { type JobRecord, type JobState, jobStates, stateHint } from '../../../core/job.js'
import { isNameOf } from '../../../core/task/any-task.js'
import type { Mill } from '../../../mill/mill.js'
import { namedTask } from '../../../mill/named-task.js'
import type { Depth } from '../../../stores/contract/queue-depth.js'
import { durationFlag, wholeFlag } from '../../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { OperationError, UsageError } from '../../output/exit-code.js'
import { counted, fromNow } from '../../output/figures.js'
import { pageLines, type QueuePage } from '../../output/job-table.js'
import { printable } from '../../output/printable.js'
import { addJobAction, type JobAction, type Which } from './job-action.js'
import { jobCommand, oneJobNamed } from './job-named.js'
import { addShow } from './job-show.js'
import { addFields } from './jobs-fields.js'

export interface ListFlags extends MillFlags {
  readonly task?: string
  readonly limit?: number
  readonly cursor?: string
}

interface JobListFlags extends ListFlags {
  readonly state?: JobState
  readonly by: 'id' | 'time' | 'retry'
  readonly envelope?: boolean
}

const mostPerPage = 200

const waitingStates = ['scheduled', 'ready'] as const

const actions: readonly JobAction[] = [
  {
    verb: 'cancel',
    summary: 'Cancel jobs: waiting ones never run, running ones learn of it at their next beat',
    done: 'cancelled',
    takes: [...waitingStates, 'running'],
    not: 'neither waiting nor running (or cancelled before) in',
    facet: 'jobs',
    all: 'all waiting and running jobs of the queue',
    failed: 'those of them that failed at least once',
    victims: ({ ready, scheduled, running, retries }, which) =>
      which === 'failed' ? retries : ready + scheduled + running,
    options: [['--reason <text>', 'the reason in the record of a running job']],
    act: (queue, which, { reason }) => queue.jobs.cancel(which, reason),
    next: whatStillRuns,
  },
  {
    verb: 'delete',
    summary: 'Remove waiting jobs, and kept results by id, without a trace',
    done: 'deleted',
    takes: [...waitingStates, 'completed', 'cancelled'],
    not: 'neither waiting nor ended with a kept result in',
    facet: 'jobs',
    all: 'all waiting jobs of the queue',
    failed: 'those of them that failed at least once',
    victims: waiting,
    act: (queue, which) => queue.jobs.delete(which),
  },
  {
    verb: 'run-now',
    summary: 'Make scheduled jobs due now',
    done: 'due now',
    field: 'dueNow',
    takes: ['scheduled'],
    not: 'not scheduled in',
    facet: 'jobs',
    all: 'all scheduled jobs of the queue',
    failed: 'those of them that failed at least once',
    act: (queue, which) => queue.jobs.runNow(which),
  },
  {
    verb: 'bury',
    summary: 'Put waiting jobs into the morgue',
    done: 'buried',
    takes: waitingStates,
    not: 'not waiting in',
    facet: 'jobs',
    all: 'all waiting jobs of the queue',
    failed: 'those of them that failed at least once',
    victims: waiting,
    act: (queue, which) => queue.jobs.bury(which),
  },
]

function state(text: string): JobState {
  if ((jobStates as readonly string[]).includes(text)) return text as JobState
  throw new InvalidArgumentError(`Allowed choices are ${jobStates.join(', ')}.${stateHint(text)}`)
}

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('Look at jobs, and change them').helpCommand(false)
  const list = millCommand(jobs, 'list [queue]', 'List the jobs of a queue, or of all')
    .addOption(new Option('--state <state>', 'only jobs in this state').choices(jobStates).argParser(state))
    .addOption(
      new Option('--by <order>', 'time: as they will run, the latest ended last; retry: those that failed')
        .choices(['id', 'time', 'retry'])
        .default('time'),
    )
    .option('--envelope', 'print all waiting jobs, one line of JSON each, for enqueue - --envelope')
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace jobs list default --state running\n  $ millrace jobs list --by retry --task resize\n  $ millrace jobs list default --envelope > default.ndjson',
    )
  withPaging(list).action((queue: string | undefined, flags: JobListFlags) => {
    if (flags.envelope) return listEnvelopes(queue, flags)
    return listPages(queue, flags, (mill, name, paging) =>
      mill.queue(name).jobs.list({ ...paging, by: flags.by, state: flags.state }),
    )
  })
  addShow(jobs)
  for (const action of actions) addJobAction(jobs, action)
  addFail(jobs)
  addFields(jobs)
}

/** Prints all waiting jobs, as lines that can be enqueued elsewhere. Exits with 1 if some cannot be written. */
async function listEnvelopes(queue: string | undefined, flags: JobListFlags): Promise<void> {
  const { state, cursor, by, task } = flags
  if (cursor !== undefined || by !== 'time')
    throw new UsageError('--envelope lists all that wait, as they will run: leave out --cursor and --by.')
  if (state !== undefined && state !== 'ready' && state !== 'scheduled')
    throw new UsageError(`--envelope lists jobs that wait: --state can be ready or scheduled, not ${state}.`)
  const { envelopeOf, waitingJobs } = await import('../../streaming/envelopes.js')
  await withMill(flags, async (mill, terminal) => {
    const names = queue === undefined ? [...mill.queues.keys()] : [mill.queue(queue).name]
    const lost: string[] = []
    for (const name of names) {
      const wanted = task === undefined ? undefined : namedTask(mill, task, name)
      for await (const jobs of waitingJobs(mill.queue(name), state === undefined ? ['ready', 'scheduled'] : [state])) {
        const listed = wanted === undefined ? jobs : jobs.filter((job) => isNameOf(wanted, job.task))
        const envelopes = listed.map((job) => ({ job, envelope: envelopeOf(job) }))
        lost.push(...envelopes.flatMap(({ job, envelope }) => (envelope === undefined ? [`${name} ${job.id}`] : [])))
        await terminal.stream(envelopes.flatMap(({ envelope }) => envelope ?? []))
      }
    }
    if (lost.length > 0)
      throw new OperationError(
        `${counted(lost.length, 'job')} could not be written: the input cannot be decoded, or more than 1,000 payloads wait: ${lost.slice(0, 10).join(', ')}${lost.length > 10 ? ' …' : ''}`,
      )
  })
}

interface FailFlags extends MillFlags {
  readonly reason: string
  readonly delay: number
  readonly last?: boolean
}

function addFail(jobs: Command): void {
  const fail = jobCommand(jobs, 'fail', '<id>', 'End the current run of a job as a failure, from outside')
    .option('--reason <text>', 'the error in its record', 'failed by an operator')
    .option('--delay <duration>', 'due again after this time', durationFlag, 0)
    .option('--last', 'leave no attempts: bury it, in an ordered queue only its oldest payload')
    .option('--no-last', 'leave attempts: run it again, even if it is isolated or a listener has it')
    .addHelpText(
      'after',
      `
  Later reports of its worker about that run are refused. The handler learns of it at its next beat; a process of its own is
  killed then. By default a job dies at once if its declared task has no attempts left, if it is isolated, or if a listener
  has it.

Examples:
  $ millrace jobs fail default welcome-42 --delay 10m
  $ millrace jobs fail default welcome-42 --last --reason "the address does not exist"`,
    )
  withJson(fail, 'print {"queue","id","failed"}').action((words: [string, ...string[]], flags: FailFlags) =>
    withMill(flags, async (mill, terminal) => {
      const { reason, delay, last } = flags
      const { queue: name, id } = await oneJobNamed(mill, 'jobs', words)
      const { jobs } = mill.queue(name)
      if (!(await jobs.fail(id, reason, { delay, ...(last !== undefined && { last }) })))
        throw new OperationError(`job '${id}' does not run in queue '${name}'; nothing was changed.`)
      const job = terminal.json ? undefined : await jobs.get(id)
      terminal.print({ queue: name, id, failed: true }, () => [
        `${name}: job ${printable(id)} failed.${job === undefined ? '' : ` ${afterFailure(job)}`}`,
      ])
    }),
  )
}

function afterFailure({ queue, id, state, attempt, runAt }: JobRecord): string {
  if (state === 'dead') return `It is dead; to run it again: \`millrace morgue revive ${queue} ${printable(id)}\`.`
  return `Its attempt ${attempt} is due ${fromNow(runAt, Date.now())}.`
}

/** For plain jobs; a job of a batch runs to the end of the batch. */
async function whatStillRuns(queue: QueueAdmin, which: Which): Promise<string | undefined> {
  const running = typeof which === 'string' ? await runningIn(queue) : await runningOf(queue, which)
  if (running === 0) return undefined
  return `${counted(running, 'job')} still ${running === 1 ? 'runs' : 'run'}, and ${running === 1 ? 'learns' : 'learn'} of it at the next beat: the signal of a handler aborts; a process of its own gets SIGTERM, and is killed if it has not ended within 5s.`
}

async function runningIn(queue: QueueAdmin): Promise<number> {
  const { running, shardLagsMs } = await queue.depth()
  return shardLagsMs === undefined ? running : 0
}

async function runningOf(queue: QueueAdmin, ids: readonly string[]): Promise<number> {
  const jobs = await Promise.all(ids.map((id) => queue.jobs.get(id)))
  return jobs.filter((job) => job?.state === 'running' && job.payloads === undefined).length
}

/** The options of every listing. */
export function withPaging(command: Command): Command {
  return withJson(
    command
      .option('--task <task>', 'only jobs of this task')
      .option('--limit <n>', 'the most jobs of one queue', wholeFlag(1, mostPerPage), 50)
      .option('--cursor <cursor>', 'continue where a page ended; needs the queue'),
    'print {"queues":[{"queue","jobs","cursor"}]}',
  )
}

/**
 * Lists one queue, or all declared ones. A page of the jobs of one task holds those among `--limit` jobs; pages without any
 * are passed over.
 */
export async function listPages(
  queue: string | undefined,
  flags: ListFlags,
  list: (mill: Mill, queue: string, paging: Pick<ListOptions, 'task' | 'limit' | 'cursor'>) => Promise<JobPage>,
): Promise<void> {
  const { limit, cursor, task: taskName } = flags
  if (cursor !== undefined && queue === undefined)
    throw new UsageError('--cursor goes on in one queue: name the queue that the page was of.')
  await withMill(flags, async (mill, terminal) => {
    const names = queue === undefined ? [...mill.queues.keys()] : [mill.queue(queue).name]
    const firstPage = async (name: string): Promise<QueuePage> => {
      const task = taskName === undefined ? undefined : namedTask(mill, taskName, name)
      let page = await list(mill, name, { task, limit, cursor })
      while (page.jobs.length === 0 && page.cursor !== undefined)
        page = await list(mill, name, { task, limit, cursor: page.cursor })
      return { queue: name, ...page }
    }
    const pages = await Promise.all(names.map(firstPage))
    terminal.print({ queues: pages }, () => pageLines(pages, terminal))
  })
}

function waiting({ ready, scheduled, retries }: Depth, which: 'all' | 'failed'): number {
  return which === 'failed' ? retries : ready + scheduled
}
