/** The command `jobs show`: prints one job, once or as long as it waits and runs. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { hasCode } from '../../../core/error-codes.js'
import { JobCancelledError, JobDeadError } from '../../../core/errors.js'
import type { JobRecord } from '../../../core/job.js'
import type { Mill } from '../../../mill/mill.js'
import { type MillFlags, withJson, withMill } from '../../mill-command.js'
import { OperationError, signalExitCode } from '../../output/exit-code.js'
import { isEnded, JobFollower } from '../../output/job-follower.js'
import { recordLines } from '../../output/record-lines.js'
import type { Terminal } from '../../output/terminal.js'
import { jobCommand, oneJobNamed } from './job-named.js'

interface ShowFlags extends MillFlags {
  readonly log?: boolean
  readonly follow?: boolean
}

/** The interval at which `--follow` reads the job. Its worker reports about once a second. */
const everyMs = 500

export function addShow(jobs: Command): void {
  const show = jobCommand(jobs, 'show', '<id>', 'Show everything that is known of a job')
    .option('--log', 'print all of the kept log, not only the last 20 lines')
    .option('--follow', 'also print its new log lines and changes, until it ends or this is interrupted')
    .addHelpText(
      'after',
      `
  The last 64 KiB of a log are kept, over all attempts. With --follow it exits with 0 if the job completed, and with 3 if it
  died or was cancelled.

Examples:
  $ millrace jobs show default welcome-42
  $ millrace jobs show sync/e-3
  $ millrace jobs show encode-7 --follow`,
    )
  withJson(
    show,
    'print the job record; with --follow one line at every change, with only the new part of its log',
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
      terminal.print(job, () => recordLines(job, terminal, flags))
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
    if (job === undefined || isEnded(job)) return ended(job, first, mill)
    await delay(everyMs, undefined, { signal: over }).catch(() => {})
    if (over.aborted) return
    try {
      job = await look()
      isAway = false
    } catch (error) {
      if (!hasCode(error, 'store-unavailable')) throw error
      if (!isAway) process.stderr.write(`millrace: ${error.message} The job is looked at again when it is back.\n`)
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
