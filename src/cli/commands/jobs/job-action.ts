/** A job action: a command that changes jobs of a queue: the named ones, all, or all that failed. */

import type { Command } from 'commander'
import type { JobFilter } from '../../../client/admin/job-filter.js'
import type { QueueAdmin } from '../../../client/admin/queue-admin.js'
import type { JobRecord, JobState } from '../../../core/job/job.js'
import { slicesOf } from '../../../core/values/pages.js'
import type { QueueDepth } from '../../../stores/contract/queue-depth.js'
import { type MillFlags, withJson, withMill } from '../../mill-command.js'
import { OperationError, UsageError } from '../../process/exit-code.js'
import { confirm } from '../../terminal/confirmation.js'
import { count, counted } from '../../terminal/figures.js'
import { type FilterFlags, filterIn, saysFilter, withFilter } from './filter-flags.js'
import { type JobFacet, jobCommand, jobsNamed } from './job-named.js'

interface ActionFlags extends MillFlags, FilterFlags {
  readonly task?: string
  readonly all?: boolean
  readonly failed?: boolean
  readonly yes?: boolean
  readonly reason?: string
  readonly members?: boolean
  readonly input?: string
  readonly priority?: number
  readonly delay?: number
  readonly runAt?: string
}

export type Which = string[] | 'all' | 'failed' | JobFilter

export interface JobAction {
  readonly verb: string
  readonly summary: string
  /** As in `3 jobs buried`. */
  readonly done: string
  /** The name of their number with `--json`. Default: `done`. */
  readonly field?: string
  /** The states of the jobs that it changes, and the words for those that are in none of them. */
  readonly takes: readonly JobState[]
  readonly not: string
  /** Why it may leave a job that is in one of these states and waited for others; absent: it leaves none. */
  readonly stays?: string
  /** Where these jobs are looked up. */
  readonly facet: JobFacet
  /** The help of `--all` and `--failed`; without `failed` there is no `--failed`. */
  readonly all: string
  readonly failed?: string
  /**
   * The approximate number of affected jobs, for a question before the action. Only for actions that cannot be undone
   * in one step.
   */
  readonly victims?: (depth: QueueDepth, which: 'all' | 'failed') => number
  readonly options?: readonly (readonly [flags: string, description: string, parse?: (text: string) => unknown])[]
  readonly act: (queue: QueueAdmin, which: Which, flags: ActionFlags) => Promise<number>
  /** What the examples of its help say besides the jobs. Default: nothing. */
  readonly example?: string
  /** The next step, for people. */
  readonly next?: (queue: QueueAdmin, which: Which) => Promise<string | undefined>
}

export function addJobAction(noun: Command, action: JobAction): void {
  const { verb, done, field = done, victims } = action
  const path = `$ millrace ${noun.name()} ${verb} default`
  const command = jobCommand(noun, verb, '<id...>', action.summary).option('--all', action.all)
  if (action.failed !== undefined) command.option('--failed', action.failed)
  withFilter(command.option('--task <task>', 'only jobs of this task, with --group and the like or alone'))
  if (victims !== undefined) command.option('--yes', 'do not ask first (only a person at a terminal is asked)')
  for (const [flags, description, parse] of action.options ?? [])
    if (parse === undefined) command.option(flags, description)
    else command.option(flags, description, parse)
  const more = action.example === undefined ? '' : ` ${action.example}`
  command.addHelpText(
    'after',
    `\nExamples:\n  ${path} welcome-42${more}\n  ${path} --${action.failed ? 'failed' : 'all'}${more}`,
  )
  withJson(command, `print {"queue","${field}"}`).action((words: [string, ...string[]], flags: ActionFlags) =>
    withMill(flags, async (mill, terminal) => {
      const [first, ...rest] = words
      const isWhole = flags.all || flags.failed || saysFilter(flags)
      const { queue: name, ids } = isWhole ? { queue: first, ids: rest } : await jobsNamed(mill, action.facet, words)
      const queue = mill.queue(name)
      const which = whichOf(ids, flags, filterIn(mill, name, flags), action.failed !== undefined)
      if (victims !== undefined && !Array.isArray(which))
        await confirm(async () => {
          const about =
            typeof which === 'string' ? victims(await queue.depth(), which) : await chosen(queue, which, action)
          return question(`${noun.name()} ${verb}`, done, name, which, about)
        }, flags)
      const before = await recordsBefore(action, queue, which, flags)
      const changed = await action.act(queue, which, flags)
      const next = terminal.json || changed === 0 ? undefined : await action.next?.(queue, which)
      terminal.print({ queue: name, [field]: changed }, () => [
        `${name}: ${counted(changed, 'job')} ${done}.`,
        ...(next === undefined ? [] : [`${name}: ${next}`]),
      ])
      if (!Array.isArray(which)) return
      const stay = await staying(action, queue, before)
      if (stay.length > 0)
        throw new OperationError(
          `${count(stay.length)} of ${counted(which.length, 'job')} stayed dead, because ${action.stays}: ${someOf(stay.map((id) => `'${id}'`))}`,
        )
      const left = flags.members ? unchangedIn(before, action.takes).length : which.length - changed
      if (left > 0)
        throw new OperationError(leftSentence({ ...action, not: `${action.not} queue '${name}'` }, left, which, before))
    }),
  )
}

/** How many jobs a filter chooses in the states that the action changes. */
async function chosen(queue: QueueAdmin, filter: JobFilter, { takes }: JobAction): Promise<number> {
  const counts = await Promise.all(takes.map((state) => queue.jobs.count({ ...filter, state })))
  return counts.reduce((sum, one) => sum + one, 0)
}

function question(command: string, done: string, queue: string, which: Which, victims: number): string {
  const kind = which === 'failed' ? 'failed job' : 'job'
  return `${command} ${queue}${typeof which === 'string' ? ` --${which}` : ''}: about ${counted(victims, kind)} would be ${done}. Go on?`
}

function whichOf(
  ids: readonly string[],
  { all, failed }: ActionFlags,
  filter: JobFilter | undefined,
  hasFailed: boolean,
): Which {
  const said = [ids.length > 0, all, failed, filter].filter(Boolean).length
  if (said !== 1)
    throw new UsageError(
      `say which jobs: either their ids, --all${hasFailed ? ', --failed' : ''}, or what they are: --group, --task, --field, --error, --text, --from, --to.`,
    )
  if (filter !== undefined) return filter
  return all ? 'all' : failed ? 'failed' : [...new Set(ids)]
}

/** The records of jobs, such as before the action; undefined: there is no such job. */
type RecordsById = ReadonlyMap<string, JobRecord | undefined>

/** The most ids whose records are read at once, or at all if a number is enough: who gives more wants a number. */
const mostLookedAt = 100

/** With `--members` the number of changed jobs does not tell how many of the named ones are among them. */
async function recordsBefore(
  { facet }: JobAction,
  queue: QueueAdmin,
  which: Which,
  { members }: ActionFlags,
): Promise<RecordsById> {
  if (!Array.isArray(which) || (which.length > mostLookedAt && !members)) return new Map()
  return recordsOf(queue[facet], which)
}

async function recordsOf(jobs: QueueAdmin[JobFacet], ids: readonly string[]): Promise<RecordsById> {
  const found = new Map<string, JobRecord | undefined>()
  for (const some of slicesOf(ids, mostLookedAt)) {
    const records = await Promise.all(some.map((id) => jobs.get(id)))
    for (const [i, id] of some.entries()) found.set(id, records[i])
  }
  return found
}

/**
 * The joins that were in a state which the action changes, and still are, if it may leave some. One that was changed,
 * ran and ended again has another end.
 */
async function staying({ facet, stays, takes }: JobAction, queue: QueueAdmin, before: RecordsById): Promise<string[]> {
  if (stays === undefined) return []
  const taken = [...before].flatMap(([id, job]) => (job?.join !== undefined && takes.includes(job.state) ? id : []))
  const after = await recordsOf(queue[facet], taken)
  return taken.filter((id) => {
    const job = after.get(id)
    return job !== undefined && takes.includes(job.state) && +job.finishedAt! === +before.get(id)!.finishedAt!
  })
}

function unchangedIn(before: RecordsById, takes: readonly JobState[]) {
  return [...before].filter(([, job]) => job === undefined || !takes.includes(job.state))
}

/** The most ids that the sentence names. */
const mostNamed = 10

function someOf(named: readonly string[]): string {
  return `${named.slice(0, mostNamed).join(', ')}${named.length > mostNamed ? ', …' : '.'}`
}

/**
 * The sentence for `left` of these jobs, which are `not` what the action changes. It names them if their states tell
 * which they are: a job that changed between the look and the action makes that unknown, as do payloads that wait
 * behind a run of their id.
 */
function leftSentence(
  { not, takes }: { readonly not: string; readonly takes: readonly JobState[] },
  left: number,
  ids: readonly string[],
  before: RecordsById,
): string {
  const [were, they] = left === 1 ? ['was left as it is', 'it is'] : ['were left as they are', 'they are']
  const sentence = `${count(left)} of ${counted(ids.length, 'job')} ${were}, because ${they} ${not}`
  const unchanged = unchangedIn(before, takes)
  if (unchanged.length !== left) return `${sentence}.`
  return `${sentence}: ${someOf(unchanged.map(([id, job]) => `'${id}' is ${job?.state ?? 'not there'}`))}`
}
