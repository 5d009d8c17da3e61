/** The work log: the log lines of a worker process: its start and stop, failures, and progress. */

import type { EventMap, EventName, JobRef, RecycleReason } from '../../core/events.js'
import type { JobState } from '../../core/job/job.js'
import { messageOf, namesText } from '../../core/messages/describe.js'
import { formatDuration } from '../../core/values/duration.js'
import { refusedWords, troubleWords } from '../../mill/log-events.js'
import type { Mill } from '../../mill/mill.js'
import { printable, shortened } from '../printable.js'
import type { StopCause } from '../process/stop-request.js'
import { againIn, count, counted, rate } from '../terminal/figures.js'
import type { Terminal } from '../terminal/terminal.js'

const progressEveryMs = 5_000
const longestLine = 300
const mostNamed = 5

/** The events that get a line each, with their words for people. */
const tellings: { readonly [Name in EventName]?: (event: EventMap[Name]) => string } = {
  'job.failed': ({ attempt, error, retryMs = 0, ...job }) =>
    `failed ${nameOf(job)}, attempt ${attempt}, ${againIn(retryMs)}: ${messageOf(error)}`,
  'job.buried': ({ reason, error, ...job }) =>
    `buried ${nameOf(job)}, ${reason}${error === undefined ? '' : `: ${error}`}`,
  'job.released': ({ reason, delayMs, holdMs = 0, ...job }) =>
    reason === 'late'
      ? `${nameOf(job)} waits for its next place in the throttle: it missed this one, and was not begun`
      : reason === 'waiting'
        ? `released ${nameOf(job)}, waiting for a signal`
        : `released ${nameOf(job)}, ${reason}, ${againIn(Math.max(delayMs, holdMs))}`,
  'task.unknown': ({ task, queue }) =>
    `no handler for task '${task}' here: its jobs on queue '${queue}' are left to workers that have one. If it belongs to another service, give each service a namespace or queues of its own`,
  'group.missing': ({ queue, task, limit }) =>
    `the ${limit === 'throttle' ? 'throttle' : '`maxRunning`'} of queue '${queue}' holds for each group, but jobs of task '${task}' have none and share one limit: give the task a \`group\``,
  'job.cancelled': ({ reason, ...job }) => `cancelled ${nameOf(job)}${reason === undefined ? '' : `: ${reason}`}`,
  'settle.refused': (job) => refusedWords(`${job.kind} of ${nameOf(job)}`, job),
  'lease.lost': ({ child, ...job }) =>
    `lease of ${nameOf(job)} lost${child === undefined ? '' : `, its process ${child} killed`}: another worker may run it`,
  'heap.unwatched': ({ tasks }) =>
    `maxHeap bounds only the heap of ${tasks.join(', ')}: this system does not report the size of a process`,
  'env.withheld': ({ task, names }) =>
    `jobs of task '${task}' run in processes that do not get ${namesText(names)} from the environment: name in its \`env\` what it needs, or give \`env: []\``,
  'job.crashed': ({ worker, charged, crashes, error, ...job }) =>
    `crash of ${nameOf(job)}, ${charged ? `it ran alone, crash ${crashes} of its own` : 'not charged'}: ${error ?? `its worker ${worker} died, was stopped or lost the store`}`,
  'job.adopted': ({ child, ...job }) => `adopted ${nameOf(job)}: its worker is gone, process ${child} goes on with it`,
  'job.detached': ({ child, ...job }) => `left ${nameOf(job)} to its process ${child}, which goes on`,
  'process.ended': ({ child, state, ...job }) =>
    `process ${child} of ${nameOf(job)}, which was adopted, has ended; ${state === undefined ? 'nothing is kept of the job' : `the job is ${state}`}`,
  'process.failed': ({ child, error, ...job }) => `process ${child ?? ''} of ${nameOf(job)} could not run it: ${error}`,
  'remains.ended': ({ child, processes }) =>
    `ended ${counted(processes, 'process', 'processes')} that a job had started: the process of the job, ${child}, is dead`,
  'job.slow': ({ attempt, runMs, ...job }) =>
    `slow ${nameOf(job)}, attempt ${attempt}, has run for ${formatDuration(runMs)} and goes on`,
  'slot.retired': ({ left, worker: _worker, ...job }) =>
    `slot retired: the handler of ${nameOf(job)} goes on after its job was given up; ${counted(left, 'slot')} left`,
  'loop.blocked': ({ forMs, jobs, givenUp }) =>
    `event loop was blocked for ${formatDuration(forMs)}${givenUp ? '; it gave up its leases' : ''}; in hand: ${namesOf(jobs)}`,
  'worker.signalled': ({ signal }) => `is told to ${signal}`,
  'worker.recycling': ({ reason }) => `takes no more jobs, ${recycleWords[reason]}; another process takes its place`,
  'worker.failed': ({ error }) => `takes no more jobs: ${messageOf(error)}`,
  'result.dropped': ({ error, ...job }) => `result of ${nameOf(job)} not kept: ${error}`,
  'store.failed': ({ call, error, retryMs }) =>
    `store: ${call} failed, ${retryMs === undefined ? 'not tried again' : againIn(retryMs)}: ${messageOf(error)}`,
  'context.failed': ({ error, retryMs }) =>
    `context: could not be opened, ${retryMs === undefined ? 'no job is taken' : againIn(retryMs)}: ${messageOf(error)}`,
  'queue.damaged': (event) => `queue '${event.queue}' is ${troubleWords['queue.damaged'](event)}`,
  'queue.mended': (event) => `queue '${event.queue}' is ${troubleWords['queue.mended'](event)}`,
  'schedule.missed': (event) => `schedule '${event.schedule}' ${troubleWords['schedule.missed'](event)}`,
  'schedule.refused': (event) => `schedule '${event.schedule}' ${troubleWords['schedule.refused'](event)}`,
  'schedule.foreign': troubleWords['schedule.foreign'],
  'schedule.lost': troubleWords['schedule.lost'],
  'hook.failed': ({ hook, error }) => `${hook} threw: ${messageOf(error)}`,
}

const recycleWords: Readonly<Record<RecycleReason, string>> = {
  'max-jobs': 'it has run as many as --max-jobs allows',
  'max-rss': 'it takes more memory than --max-rss allows',
  'slot-retired': 'a slot of it is retired',
  signalled: 'as it was told',
}

/** Releases that a task asks for itself, that belong to every stop, or of which another line tells once. */
const quietReleases = new Set(['snoozed', 'should-run', 'stopping', 'unknown-task'])

interface Totals {
  completed: number
  failed: number
  buried: number
  released: number
  cancelled: number
  /** Crashes of other workers, found by this one. */
  crashed: number
}

/** The count for the end of a job whose own process has settled it. A job that runs again has not ended. */
const totalOfEnd: { readonly [State in JobState]?: keyof Totals } = {
  completed: 'completed',
  dead: 'buried',
  cancelled: 'cancelled',
}

/** The count for each event. */
const totalOf: { readonly [Name in EventName]?: keyof Totals } = {
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.buried': 'buried',
  'job.released': 'released',
  'job.cancelled': 'cancelled',
  'job.crashed': 'crashed',
}

interface WorkStart {
  readonly worker: string
  readonly queues: readonly string[]
  readonly concurrency: number
}

export class WorkLog {
  readonly #mill: Mill
  readonly #terminal: Terminal
  readonly #startedAt = performance.now()
  readonly #totals: Totals = { completed: 0, failed: 0, buried: 0, released: 0, cancelled: 0, crashed: 0 }
  #told = { at: this.#startedAt, completed: 0, changes: 0 }
  #timer: NodeJS.Timeout | undefined

  constructor(mill: Mill, terminal: Terminal) {
    this.#mill = mill
    this.#terminal = terminal
    for (const [event, total] of Object.entries(totalOf) as [EventName, keyof Totals][])
      mill.on(event, () => {
        this.#totals[total] += 1
      })
    mill.on('process.ended', ({ state }) => {
      const total = state && totalOfEnd[state]
      if (total !== undefined) this.#totals[total] += 1
    })
    for (const name of Object.keys(tellings) as EventName[]) mill.on(name, (event) => this.#tell(name, event))
  }

  started({ worker, queues, concurrency }: WorkStart, running: () => number): void {
    const weights = Object.fromEntries(queues.map((name) => [name, this.#mill.queues.get(name)!.weight]))
    const { text: store } = this.#mill.store
    this.#terminal.event('worker.started', { worker, store, queues: weights, concurrency }, () => {
      const line = Object.entries(weights).map(([name, weight]) => `${name}:${weight}`)
      return `started on ${store}, queues ${line.join(' ')}, ${concurrency} at once`
    })
    this.#timer = setInterval(() => this.#progress(running()), progressEveryMs)
  }

  stopping(cause: StopCause, running: number): void {
    this.#terminal.event('worker.stopping', { cause, running }, () =>
      running === 0 ? `stopping (${cause})` : `stopping (${cause}), waiting for ${counted(running, 'running job')}`,
    )
  }

  stopped(): void {
    clearInterval(this.#timer)
    const ms = performance.now() - this.#startedAt
    const { completed, failed, buried, released, cancelled, crashed } = this.#totals
    this.#terminal.event('worker.stopped', { ranMs: Math.round(ms), ...this.#totals }, () => {
      const { green, red } = this.#terminal.colors
      const bad = failed + buried > 0 ? red(`${count(failed)} failed, ${count(buried)} buried`) : 'none failed'
      const rest = [
        ...(cancelled > 0 ? [`, ${count(cancelled)} cancelled`] : []),
        ...(released > 0 ? [`, ${count(released)} put back`] : []),
        ...(crashed > 0 ? [`, ${counted(crashed, 'crash', 'crashes')} of others found`] : []),
      ]
      return `stopped after ${formatDuration(ms)}: ${green(`${count(completed)} done`)}, ${bad}${rest.join('')}`
    })
  }

  #progress(running: number): void {
    const { completed, failed, buried, released, cancelled } = this.#totals
    const changes = completed + failed + buried + released + cancelled
    const { at, ...before } = this.#told
    if (changes === before.changes) return
    const now = performance.now()
    this.#told = { at: now, completed, changes }
    const perSecond = rate(completed - before.completed, now - at)
    this.#terminal.event(
      'worker.progressed',
      { ...this.#totals, running },
      () =>
        `${count(completed)} done (${perSecond}/s), ${count(failed)} failed${cancelled > 0 ? `, ${count(cancelled)} cancelled` : ''}, ${running} running`,
    )
  }

  #tell<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    if (name === 'job.released' && quietReleases.has((event as EventMap['job.released']).reason)) return
    // The burial follows, and says the same to people.
    if (name === 'job.failed' && (event as EventMap['job.failed']).retryMs === undefined && !this.#terminal.json) return
    const fields = Object.entries(event).map(([key, value]) => [key, value instanceof Error ? value.message : value])
    const words = tellings[name] as (event: EventMap[Name]) => string
    const { red, yellow } = this.#terminal.colors
    const paint = name === 'job.buried' || name === 'hook.failed' ? red : yellow
    this.#terminal.event(name, Object.fromEntries(fields), () => paint(shortened(printable(words(event)), longestLine)))
  }
}

function namesOf(jobs: readonly JobRef[]): string {
  const named = jobs.slice(0, mostNamed).map(nameOf)
  return `${named.join(', ') || 'no job'}${jobs.length > named.length ? ` and ${count(jobs.length - named.length)} more` : ''}`
}

function nameOf({ queue, id, task }: JobRef): string {
  return `${queue} ${task} ${id}`
}
