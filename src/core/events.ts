/**
 * The events of a process: what happens to its jobs, workers and store, each a `noun.pastTense`. Millrace prints
 * nothing itself; a subscriber may.
 */

import { type Channel, channel } from 'node:diagnostics_channel'
import { InvalidArgumentError } from './errors.js'
import type { EnqueueOutcome, JobState, Progress } from './job/job.js'
import { describe } from './messages/describe.js'
import { probablyMeant } from './messages/spelling.js'

/** One job as events name it. */
export interface JobRef {
  readonly queue: string
  readonly id: string
  readonly task: string
}

/** One task as events name it. */
interface TaskRef {
  readonly task: string
  readonly queue: string
}

/** One tick of a schedule as events name it; `tickAt` is its instant in ms since 1970. */
interface TickRef {
  readonly schedule: string
  readonly queue: string
  readonly tickAt: number
}

/** The reason why ticks were not enqueued in time. */
type MissedReason = 'late' | 'paused' | 'changed'

/** The reason why a tick could not be enqueued: its queue is full or draining, or there was an error. */
type TickRefusal = 'full' | 'draining' | 'failed'

/**
 * The reason why a worker asks to be replaced: it ran `maxJobs`, its process outgrew `maxRss`, it lost slots to retired
 * handlers, or an operator asked for it.
 */
export type RecycleReason = 'max-jobs' | 'max-rss' | 'slot-retired' | 'signalled'

/** An end that may hold the job's group. */
interface Holding {
  /** How long nothing of its group, or of its queue, is started, if the handler asked for a hold. */
  readonly holdMs?: number
}

/** The death of a worker. */
interface WorkerDeath {
  /** How its process ended, if the supervisor of `millrace work` saw it. */
  readonly error?: string
}

/** A change of a schedule that another configuration may have declared. */
interface TakenOver {
  /** The `schedulesOf` of the configuration that had declared the schedule, if that is another one. */
  readonly takenFrom?: string
}

export interface EventMap {
  'job.enqueued': JobRef & { readonly outcome: EnqueueOutcome }
  /**
   * An enqueue met a dead job of its id, and its input was dropped: the outcome is `'duplicate'`. With `ifWaiting:
   * 'replace'` the new job would have taken the place of the dead one.
   */
  'job.dropped': JobRef
  'job.started': JobRef & { readonly attempt: number; readonly worker: string }
  /**
   * A job that waited for others runs: all of them have ended as its task needs it. Again if it goes on after a sleep or
   * a wait before it has failed.
   */
  'join.ready': JobRef
  /**
   * A job that waited for others is dead: `join-member-dead`, `join-late`, `join-never-sealed` or
   * `join-results-too-large`. Each is reported once, by one worker, within some seconds.
   */
  'join.failed': JobRef & { readonly reason: string }
  /** The handler has reported its progress. */
  'job.progressed': JobRef & { readonly attempt: number; readonly progress: Progress }
  'job.completed': JobRef & Holding & { readonly attempt: number; readonly runMs: number }
  'job.failed': JobRef &
    Holding & { readonly attempt: number; readonly error: unknown; readonly retryMs: number | undefined }
  'job.buried': JobRef & { readonly reason: string; readonly error: string | undefined }
  'job.released': JobRef & Holding & { readonly reason: string; readonly delayMs: number }
  /**
   * A handler has caught what ends a run that sleeps or waits, or has not awaited `ctx.sleep()` or `ctx.waitFor()`. The job
   * sleeps or waits all the same; what the handler did after that happens again in its next run. `text`: what the job does.
   */
  'suspension.swallowed': JobRef & { readonly text: string }
  'job.cancelled': JobRef & { readonly reason: string | undefined }
  /**
   * A lease ended unsettled and this process found it: `worker` died, was stopped, or lost the store. `charged`: the
   * crash counts against the job, because it ran alone.
   */
  'job.crashed': JobRef & WorkerDeath & { readonly worker: string; readonly charged: boolean; readonly crashes: number }
  /**
   * The worker of this job is gone but the job's process goes on: `worker` watches it from now on. `child`: the pid of
   * the process.
   */
  'job.adopted': JobRef & { readonly worker: string; readonly child: number }
  /** The worker of this job stops; the job goes on in its own process. */
  'job.detached': JobRef & { readonly worker: string; readonly child: number }
  /** The job has run for longer than its task's `slowAfter`, and goes on. */
  'job.slow': JobRef & { readonly attempt: number; readonly runMs: number }
  /**
   * The store refused the end of an attempt: its lease was lost, or the job is gone. `inDoubt`: this end had been sent before without an
   * answer, and may have been carried out then.
   */
  'settle.refused': JobRef & { readonly kind: string; readonly answer: 'lost' | 'gone'; readonly inDoubt?: boolean }
  'lease.lost': JobRef & { readonly child?: number }
  /** The system does not report how large a process is, so `maxHeap` of these tasks bounds only their heaps. */
  'heap.unwatched': { readonly worker: string; readonly tasks: readonly string[] }
  /**
   * The process of an isolated job does not get these variables of the worker's environment, and its task does not say
   * by `env` which it needs. Reported once for a task.
   */
  'env.withheld': TaskRef & { readonly names: readonly string[] }
  /**
   * The process of an isolated job could not start or could not load its task; the job waits for another version of it.
   */
  'process.failed': JobRef & { readonly child: number | undefined; readonly error: string }
  /**
   * The process of an adopted job has settled the job and ended. `state`: the job's state then; undefined if nothing is
   * kept of it.
   */
  'process.ended': JobRef & { readonly child: number; readonly state: JobState | undefined }
  /**
   * Processes that a job had started were ended, because the process of the job, `child`, died and nobody saw it.
   * `processes`: how many there were.
   */
  'remains.ended': { readonly worker: string; readonly child: number; readonly processes: number }
  /** A job of a throttled queue was claimed but not started. The throttle counts its start all the same. */
  'permit.wasted': JobRef & { readonly reason: string }
  /**
   * A job of a throttled queue began `lateMs` later than its limit allows for: a window near it may hold one start too
   * many.
   */
  'start.late': JobRef & { readonly lateMs: number }
  /** A result could not be kept because it cannot be encoded or is too large. The job completed all the same. */
  'result.dropped': JobRef & { readonly error: string }
  /**
   * A handler went on after its job was given up, and keeps its slot until it ends. `left`: slots that still take jobs.
   */
  'slot.retired': JobRef & { readonly worker: string; readonly left: number }
  /**
   * The event loop was blocked, and every handler of this process with it. `jobs`: the jobs in hand then. `givenUp`: it
   * was blocked for so long that the worker let go of their leases.
   */
  'loop.blocked': { readonly forMs: number; readonly jobs: readonly JobRef[]; readonly givenUp: boolean }
  'queue.claimed': { readonly queue: string; readonly jobs: number; readonly worker: string }
  /**
   * The keys of a queue are not Millrace's or contradict each other. Its jobs wait; the worker skips the queue and
   * checks it again in `retryMs`. `error` names the remedy.
   */
  'queue.damaged': { readonly queue: string; readonly shard: number; readonly error: unknown; readonly retryMs: number }
  /** A queue that was damaged can be used again. */
  'queue.mended': { readonly queue: string }
  /**
   * The result of this job has been waited for in this process for 10 s, and no live worker serves its queue. Reported
   * once for a queue.
   */
  'queue.unserved': { readonly queue: string; readonly id: string }
  /**
   * A job expires before its first retry is due, or may do so by the chance of its backoff, and then runs once at most.
   * Reported once for a task. `retryMs`: the longest delay of that retry.
   */
  'expiry.short': TaskRef & { readonly expiresMs: number; readonly retryMs: number }
  /**
   * The schema of a task makes something else each time it runs, a random default for instance, and its output cannot
   * be stored because the schema does not accept it as input. Each attempt gets another value. Reported once for a task.
   */
  'schema.varied': TaskRef
  /**
   * A worker claimed a job of a task for which it has no handler. It leaves such jobs to the workers that have one.
   * Reported once for a task and its queue.
   */
  'task.unknown': TaskRef
  /**
   * A worker claimed a job without a group from a queue whose throttle, or `maxRunning`, holds for each group, and no
   * task of the queue says one: all jobs without a group share the limit of one. Reported once for a queue.
   */
  'group.missing': TaskRef & { readonly limit: 'throttle' | 'maxRunning' }
  /** A schedule has enqueued the job of a tick, `lateMs` after its instant. */
  'schedule.ticked': JobRef & TickRef & { readonly lateMs: number; readonly outcome: 'added' | 'merged' | 'duplicate' }
  /** Ticks of a schedule, `ticks` of them up to this one, were left out because its last job waits or runs. */
  'schedule.skipped': TickRef & { readonly lastId: string | undefined; readonly ticks: number }
  /**
   * From this tick on ticks were not enqueued in time: no process was there (`'late'`), or its queue took no jobs before
   * the schedule was paused or got other times. `enqueued` ticks are enqueued now and `leftOut` are left out (1,000: as
   * many or more).
   */
  'schedule.missed': TickRef & { readonly enqueued: number; readonly leftOut: number; readonly reason: MissedReason }
  /** A tick could not be enqueued, and is tried again in `retryMs`. For `'failed'` the error says why. */
  'schedule.refused': TickRef & { readonly reason: TickRefusal; readonly error: unknown; readonly retryMs: number }
  /** A schedule in the store differed from the configuration, and was changed to match it. */
  'schedule.reconciled': TakenOver & { readonly schedule: string; readonly change: 'added' | 'changed' | 'removed' }
  /**
   * Schedules of another configuration, named by its `schedulesOf`, are in the store, and are left alone. Reported once
   * for each; `by` is the `schedulesOf` of this one.
   */
  'schedule.foreign': { readonly declaredBy: string; readonly schedules: readonly string[]; readonly by: string }
  /**
   * The store had lost what it held, schedules too. Those of this configuration were written again; those that were set
   * at run time are gone.
   */
  'schedule.lost': { readonly restored: readonly string[] }
  'worker.started': { readonly worker: string; readonly queues: readonly string[] }
  /** `apiCalls`: the calls that the mill has made so far, by kind, on a store that charges for calls. */
  'worker.stopped': { readonly worker: string; readonly apiCalls?: Readonly<Record<string, number>> }
  /** An operator has told the worker to stop, or to make room for another. */
  'worker.signalled': { readonly worker: string; readonly signal: 'stop' | 'recycle' }
  /** The worker takes no more jobs and stops, so that another process can take its place. */
  'worker.recycling': { readonly worker: string; readonly reason: RecycleReason }
  /**
   * The worker takes no more jobs, because of an error that waiting does not mend. `worker.finished()` rejects with it.
   */
  'worker.failed': { readonly worker: string; readonly error: unknown }
  /** A call to the store failed. The worker tries again in `retryMs`; undefined: never. */
  'store.failed': { readonly call: string; readonly error: unknown; readonly retryMs: number | undefined }
  /**
   * The file of a SQLite store was made in the working directory: its path is relative, and neither the configuration nor
   * the main script belongs to a project. The same program started elsewhere would not see these jobs.
   */
  'store.strayed': { readonly file: string }
  /**
   * What handlers need could not be opened by `context` of the mill. The start tries again in `retryMs`; undefined: it
   * has tried for half a minute, and takes no job.
   */
  'context.failed': { readonly error: unknown; readonly retryMs: number | undefined }
  /** A user's hook or listener threw; nothing depends on it. */
  'hook.failed': { readonly hook: string; readonly error: unknown }
}

export type EventName = keyof EventMap
export type Listener<Name extends EventName> = (event: EventMap[Name]) => void

/**
 * A job counter: the counts for a history. It exists because building an event for each count would cost every job more
 * than the count.
 */
export interface JobCounter {
  /** `jobs`: how many, by default 1; a merged payload counts as one. */
  enqueued(queue: string, jobs?: number): void
  /** An attempt has begun. */
  started(queue: string): void
  /** `runMs`: the duration of the attempt. */
  completed(queue: string, runMs: number): void
  failed(queue: string, runMs: number): void
  buried(queue: string): void
  crashed(queue: string): void
  cancelled(queue: string): void
}

/** A task counter: the ends of attempts by task, for the metrics of a process. */
export interface TaskCounter {
  completed(job: Pick<JobRef, 'queue' | 'task'>, runMs: number): void
  failed(job: Pick<JobRef, 'queue' | 'task'>, runMs: number): void
  buried(job: Pick<JobRef, 'queue' | 'task'>): void
}

/** The receivers of one event. */
interface Audience {
  /** A new list for each change: a listener added during an event first hears the next one. */
  listeners: readonly Listener<EventName>[]
  readonly channel: Channel
}

/**
 * The listeners by event. A listener that throws or rejects is reported as `hook.failed` and does not affect the
 * others. Each event is also published to the diagnostics channel of its name, if that has subscribers.
 */
export class Events {
  /** Counts the same jobs for a history; undefined if no history is kept. */
  counter: JobCounter | undefined
  /** Counts them by task; undefined until somebody looks at the metrics of this process. */
  taskCounter: TaskCounter | undefined
  readonly #audiences = new Map<EventName, Audience>()

  /** Adds a listener; returns a function that removes it. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const added = listener as Listener<EventName>
    const audience = this.#of(name)
    audience.listeners = [...new Set([...audience.listeners, added])]
    return () => {
      audience.listeners = audience.listeners.filter((one) => one !== added)
    }
  }

  /** Whether the event has a listener. Hot paths skip building the event if it has none. */
  has(name: EventName): boolean {
    const { listeners, channel } = this.#of(name)
    return listeners.length > 0 || channel.hasSubscribers
  }

  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    const { listeners, channel } = this.#of(name)
    for (const listener of listeners) {
      try {
        const answer: unknown = listener(event)
        // An async listener that rejects would otherwise end the process.
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#failed(name, error))
      } catch (error) {
        this.#failed(name, error)
      }
    }
    if (channel.hasSubscribers) channel.publish(event)
  }

  /** Listeners and channel in one look-up: each job asks several times. */
  #of(name: EventName): Audience {
    let audience = this.#audiences.get(name)
    if (audience === undefined) {
      audience = { listeners: [], channel: channel(`millrace:${name}`) }
      this.#audiences.set(name, audience)
    }
    return audience
  }

  #failed(name: EventName, error: unknown): void {
    if (name !== 'hook.failed') this.emit('hook.failed', { hook: `listener of ${name}`, error })
  }
}

/** All events. */
const known: Readonly<Record<EventName, true>> = {
  'job.enqueued': true,
  'job.dropped': true,
  'join.ready': true,
  'join.failed': true,
  'job.started': true,
  'job.progressed': true,
  'job.completed': true,
  'job.failed': true,
  'job.buried': true,
  'job.released': true,
  'suspension.swallowed': true,
  'job.cancelled': true,
  'job.crashed': true,
  'job.adopted': true,
  'job.detached': true,
  'job.slow': true,
  'settle.refused': true,
  'lease.lost': true,
  'heap.unwatched': true,
  'env.withheld': true,
  'process.failed': true,
  'process.ended': true,
  'remains.ended': true,
  'permit.wasted': true,
  'start.late': true,
  'result.dropped': true,
  'slot.retired': true,
  'loop.blocked': true,
  'queue.claimed': true,
  'queue.damaged': true,
  'queue.mended': true,
  'queue.unserved': true,
  'expiry.short': true,
  'schema.varied': true,
  'task.unknown': true,
  'group.missing': true,
  'schedule.ticked': true,
  'schedule.skipped': true,
  'schedule.missed': true,
  'schedule.refused': true,
  'schedule.reconciled': true,
  'schedule.foreign': true,
  'schedule.lost': true,
  'worker.started': true,
  'worker.stopped': true,
  'worker.signalled': true,
  'worker.recycling': true,
  'worker.failed': true,
  'store.failed': true,
  'store.strayed': true,
  'context.failed': true,
  'hook.failed': true,
}
const names = Object.keys(known) as EventName[]

/** Names that other queues use for some of them. */
const foreign: Readonly<Record<string, EventName>> = {
  active: 'job.started',
  error: 'store.failed',
  progress: 'job.progressed',
  stalled: 'job.crashed',
}

/** Throws `InvalidArgumentError` for a value that is not the name of an event: a listener for it would never be called. */
export function refuseNoEvent(name: unknown): void {
  if (typeof name === 'string' && Object.hasOwn(known, name)) return
  const meant = typeof name === 'string' ? meantBy(name) : undefined
  throw new InvalidArgumentError(
    `there is no event ${describe(name)}${meant === undefined ? '' : `; probably '${meant}' is meant`}. There are ${names.join(', ')}.`,
  )
}

function meantBy(name: string): EventName | undefined {
  const ofJobs = names.find((one) => one === `job.${name}`)
  if (ofJobs !== undefined) return ofJobs
  return Object.hasOwn(foreign, name) ? foreign[name] : (probablyMeant(name, names) as EventName | undefined)
}
