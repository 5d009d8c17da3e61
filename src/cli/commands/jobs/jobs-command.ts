/** The command `jobs`: the records of jobs, as a list or one by one, and an operator's actions on jobs. */

import { setTimeout as delay } from 'node:timers/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type JobVerb, jobsFor, jobVerbs } from '../../../client/admin/operator-verbs.js'
import type { QueueAdmin } from '../../../client/admin/queue-admin.js'
import { explainedJob } from '../../../client/jobs/wait-facts.js'
import { hasCode, JobCancelledError, JobDeadError } from '../../../core/errors.js'
import {
  highestPriority,
  isEndState,
  type JobRecord,
  type JobState,
  jobStates,
  lowestPriority,
  stateHint,
} from '../../../core/job/job.js'
import { isNameOf } from '../../../core/task/any-task.js'
import { defined } from '../../../core/values/defined.js'
import type { Mill } from '../../../mill/mill.js'
import { namedTask } from '../../../mill/named-task.js'
import { durationFlag, wholeFlag } from '../../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { OperationError, signalExitCode, UsageError } from '../../process/exit-code.js'
import { counted } from '../../terminal/figures.js'
import { JobFollower } from '../../terminal/job-follower.js'
import { recordLines } from '../../terminal/record-lines.js'
import type { Terminal } from '../../terminal/terminal.js'
import { listFilterIn, withFilter } from './filter-flags.js'
import { addJobAction, type JobAction, type Which } from './job-action.js'
import { type ListFlags, listPages, withPaging } from './job-list.js'
import { jobCommand, oneJobNamed } from './job-named.js'
import { addEnqueueAgain, addFail, addFields, addForgetStep, addSignal } from './one-job-commands.js'

interface JobListFlags extends ListFlags {
  readonly state?: JobState
  readonly by: 'id' | 'time' | 'retry'
  readonly envelope?: boolean
}

function state(text: string): JobState {
  if ((jobStates as readonly string[]).includes(text)) return text as JobState
  throw new InvalidArgumentError(`Allowed choices are ${jobStates.join(', ')}.${stateHint(text)}`)
}

export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('Look at jobs, and change them').helpCommand(false)
  const list = millCommand(jobs, 'list [queue]', 'List the jobs of a queue, or of all')
    .addOption(
      new Option('--state <state>', 'only jobs in this state; waiting: for other jobs, or for a signal')
        .choices(jobStates)
        .argParser(state),
    )
    .addOption(
      new Option('--by <order>', 'time: as they will run, the latest ended last; retry: those that failed')
        .choices(['id', 'time', 'retry'])
        .default('time'),
    )
    .option(
      '--envelope',
      'print all ready and scheduled jobs that can move, one line of JSON each, for enqueue - --envelope',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace jobs list default --state running\n  $ millrace jobs list --by retry --task resize\n  $ millrace jobs list default --envelope > default.ndjson',
    )
  withPaging(list).action((queue: string | undefined, flags: JobListFlags, command: Command) => {
    if (flags.envelope) return listEnvelopes(queue, flags, command.getOptionValueSource('limit') !== 'default')
    return listPages(queue, flags, (mill, name, paging) =>
      mill.queue(name).jobs.list({ ...paging, by: flags.by, state: flags.state }),
    )
  })
  addCount(jobs)
  addShow(jobs)
  for (const action of actions) addJobAction(jobs, action)
  addEnqueueAgain(jobs)
  addFail(jobs)
  addFields(jobs)
  addSignal(jobs)
  addForgetStep(jobs)
}

function addCount(jobs: Command): void {
  const command = millCommand(jobs, 'count [queue]', 'Count the jobs of a queue, or of all, that a filter chooses')
    .addOption(
      new Option('--state <state>', 'only jobs in this state; waiting: for other jobs, or for a signal')
        .choices(jobStates)
        .argParser(state),
    )
    .option('--task <task>', 'only jobs of this task')
  withFilter(command).addHelpText(
    'after',
    '\n  It reads the jobs of the queue; `millrace stats` has the counts by state at once.\n\nExamples:\n  $ millrace jobs count billing --group acme\n  $ millrace jobs count --field order=4711 --state ready',
  )
  withJson(command, 'print {"queues":[{"queue","count"}]}').action(
    (queue: string | undefined, flags: Omit<ListFlags, 'limit' | 'cursor'> & Pick<JobListFlags, 'state'>) =>
      withMill(flags, async (mill, terminal) => {
        const where = defined({ ...listFilterIn(flags), state: flags.state })
        if (Object.keys(where).length === 0 && flags.task === undefined)
          throw new UsageError(
            'say which jobs: --state, --task, --group, --field, --error, --text, --from, --to. `millrace stats` counts them all.',
          )
        const names = queue === undefined ? [...mill.queues.keys()] : [mill.queue(queue).name]
        const queues: { readonly queue: string; readonly count: number }[] = []
        for (const name of names) {
          const task = flags.task === undefined ? undefined : namedTask(mill, flags.task, name)
          queues.push({ queue: name, count: await mill.queue(name).jobs.count(defined({ ...where, task })) })
        }
        terminal.print({ queues }, () => queues.map((one) => `${one.queue}: ${counted(one.count, 'job')}.`))
      }),
  )
}

/**
 * Prints the waiting jobs that the filter chooses, as lines that can be enqueued elsewhere. Exits with 1 if some cannot be
 * written, or should end where they are.
 */
async function listEnvelopes(queue: string | undefined, flags: JobListFlags, isLimited: boolean): Promise<void> {
  const { state, cursor, by, task } = flags
  if (cursor !== undefined || by !== 'time' || isLimited)
    throw new UsageError('--envelope lists all that wait, as they will run: leave out --cursor, --by and --limit.')
  if (state !== undefined && state !== 'ready' && state !== 'scheduled')
    throw new UsageError(`--envelope lists jobs that wait: --state can be ready or scheduled, not ${state}.`)
  const { envelopeOf, waitingJobs } = await import('../../streaming/envelopes.js')
  const states = state === undefined ? (['ready', 'scheduled', 'waiting'] as const) : [state]
  await withMill(flags, async (mill, terminal) => {
    const names = queue === undefined ? [...mill.queues.keys()] : [mill.queue(queue).name]
    const filter = listFilterIn(flags)
    const lost: string[] = []
    const staying: string[] = []
    for (const name of names) {
      const wanted = task === undefined ? undefined : namedTask(mill, task, name)
      for await (const jobs of waitingJobs(mill, name, states, filter)) {
        const envelopes: object[] = []
        for (const { job, stays } of jobs) {
          if (wanted !== undefined && !isNameOf(wanted, job.task)) continue
          const envelope = stays === undefined ? envelopeOf(job) : undefined
          if (envelope !== undefined) envelopes.push(envelope)
          else if (stays === undefined) lost.push(`${name} ${job.id}`)
          else staying.push(`${name} ${job.id} ${stays}`)
        }
        await terminal.stream(envelopes)
      }
    }
    if (lost.length + staying.length > 0) throw new OperationError(unwritten(lost, staying))
  })
}

/** What was not written, and why. Pure. */
function unwritten(lost: readonly string[], staying: readonly string[]): string {
  const some = (named: readonly string[]) => `${named.slice(0, 10).join(', ')}${named.length > 10 ? ' …' : ''}`
  const sentences = [
    ...(lost.length === 0
      ? []
      : [
          `${counted(lost.length, 'job')} could not be written: the input cannot be decoded, or more than 1,000 payloads wait: ${some(lost)}.`,
        ]),
    ...(staying.length === 0
      ? []
      : [
          `${counted(staying.length, 'job')} should end where they are, and were not written: what they have done or wait for does not move. \`jobs delete --all\` would remove them: ${some(staying)}.`,
        ]),
  ]
  return sentences.join(' ')
}

interface ShowFlags extends MillFlags {
  readonly log?: boolean
  readonly follow?: boolean
}

/** The interval at which `--follow` reads the job. Its worker reports about once a second. */
const everyMs = 500

/** Prints one job, once or as long as it waits and runs. */
function addShow(jobs: Command): void {
  const show = jobCommand(jobs, 'show', '<id>', 'Show everything that is known of a job')
    .option('--log', 'print all of the kept log, not only the last 20 lines')
    .option('--follow', 'also print its new log lines and changes, until it ends or this is interrupted')
    .addHelpText(
      'after',
      `
  waits because: why it has not begun, the most decisive reason first.
  The last 64 KiB of a log are kept, over all attempts. With --follow it exits with 0 if the job completed, and with 3 if it
  died or was cancelled.

Examples:
  $ millrace jobs show default welcome-42
  $ millrace jobs show sync/e-3
  $ millrace jobs show encode-7 --follow`,
    )
  withJson(
    show,
    'print the job record, and in "waits" why it has not begun; with --follow one line at every change, with only the new part of its log',
  ).action((words: [string, ...string[]], flags: ShowFlags) => {
    const print = async (mill: Mill, terminal: Terminal) => {
      const { queue, id } = await oneJobNamed(mill, 'jobs', words)
      const look = () => mill.queue(queue).jobs.get(id)
      const job = await look()
      if (job === undefined)
        throw new OperationError(
          `nothing is kept of a job '${id}' in queue '${queue}': it ended without a kept result, or never existed.`,
        )
      // Listening starts before anything is printed: a reader of the first lines may end this process at once.
      const over = flags.follow ? toldToEnd() : undefined
      const waits = await explainedJob(await mill.adminParts.look(), job, Date.now())
      terminal.print({ ...job, ...(waits.length > 0 && { waits }) }, () =>
        recordLines(job, terminal, { ...flags, waits }),
      )
      if (over !== undefined) await follow(look, job, mill, terminal, over)
    }
    return withMill(flags, print, { isLong: flags.follow ?? false })
  })
}

/** Aborts when a signal asks this process to end; the process then exits with the code of that signal. */
function toldToEnd(): AbortSignal {
  const over = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      process.exitCode = signalExitCode(signal)
      over.abort()
    })
  return over.signal
}

/** Resolves when the job has completed, or `over` aborts. Throws if it ended in another way. */
async function follow(
  look: () => Promise<JobRecord | undefined>,
  first: JobRecord,
  mill: Mill,
  terminal: Terminal,
  over: AbortSignal,
): Promise<void> {
  const follower = new JobFollower(first, terminal)
  let isAway = false
  for (let job: JobRecord | undefined = first; !over.aborted; ) {
    if (job === undefined || isEndState(job.state)) return ended(job, first, mill)
    await delay(everyMs, undefined, { signal: over }).catch(() => {})
    if (over.aborted) return
    try {
      job = await look()
      isAway = false
    } catch (error) {
      if (!hasCode(error, 'store-unavailable')) throw error
      if (!isAway) process.stderr.write(`millrace: ${error.message} The command goes on when the store is back.\n`)
      isAway = true
      continue
    }
    if (job !== undefined) follower.tell(job)
  }
}

/** Nothing is kept of an ordered job that has completed. */
function ended(job: JobRecord | undefined, { queue, id }: JobRecord, mill: Mill): void {
  if (job?.state === 'dead') throw new JobDeadError(queue, id, job.reason, job.error)
  if (job?.state === 'cancelled') throw new JobCancelledError(queue, id)
  if (job === undefined && mill.queues.get(queue)?.ordered !== true)
    throw new OperationError(
      `job '${id}' in queue '${queue}' has ended, and nothing is kept of it: whether it completed is not known.`,
    )
}

const actions: readonly JobAction[] = [
  actionOf('cancel', {
    summary: 'Cancel jobs: waiting ones never run, running ones learn of it at their next beat',
    not: 'neither waiting nor running (or cancelled before) in',
    all: 'all waiting and running jobs of the queue',
    options: [['--reason <text>', 'the reason in the record of a running job']],
    next: whatStillRuns,
  }),
  actionOf('delete', {
    summary: 'Remove waiting jobs, and kept results by id, without a trace',
    takes: [...jobVerbs.delete.takes, 'completed', 'cancelled'],
    not: 'neither waiting nor ended with a kept result in',
    all: 'all waiting jobs of the queue',
  }),
  actionOf('run-now', {
    summary: 'Make scheduled jobs due now',
    field: 'dueNow',
    not: 'not scheduled in',
    all: 'all scheduled jobs of the queue',
  }),
  {
    ...{ verb: 'reschedule', done: 'rescheduled', takes: ['scheduled', 'ready'], facet: 'jobs' },
    summary: 'Change the priority or the due time of waiting jobs',
    not: 'not waiting for a worker in',
    all: 'all scheduled and ready jobs of the queue',
    failed: 'those of them that failed at least once',
    example: '--priority 10',
    options: [
      ['--priority <n>', 'higher first', wholeFlag(lowestPriority, highestPriority)],
      ['--delay <duration>', 'due after this time: 0, 30s, 5m, 1h30m', durationFlag],
      ['--run-at <time>', 'due at this moment: 2026-12-24T18:00:00Z'],
    ],
    act: (queue, which, { priority, delay, runAt }) => {
      const to = defined({ priority, delay, runAt })
      if (Object.keys(to).length === 0)
        throw new UsageError('give --priority, --delay or --run-at. Nothing was changed.')
      return queue.jobs.reschedule(which, to)
    },
  },
  actionOf('bury', {
    summary: 'Put waiting jobs into the morgue',
    not: 'not waiting in',
    all: 'all waiting jobs of the queue',
  }),
]

function actionOf(
  verb: JobVerb,
  words: Pick<JobAction, 'summary' | 'not' | 'all'> & Partial<Pick<JobAction, 'field' | 'takes' | 'options' | 'next'>>,
): JobAction {
  const { method, done, takes } = jobVerbs[verb]
  return {
    ...{ verb, done, takes, facet: 'jobs', failed: 'those of them that failed at least once' },
    ...(verb !== 'run-now' && { victims: (depth, which) => jobsFor(verb, depth, which) }),
    act: (queue, which, { reason }) => queue.jobs[method](which, reason),
    ...words,
  }
}

/** For plain jobs; a job of a batch runs to the end of the batch. */
async function whatStillRuns(queue: QueueAdmin, which: Which): Promise<string | undefined> {
  const running = Array.isArray(which) ? await runningOf(queue, which) : await runningIn(queue)
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
