/** Queue administration: one queue and its jobs, the same for every store that keeps records. */

import { setTimeout as delay } from 'node:timers/promises'
import { hasCode, InvalidArgumentError, UnknownQueueError } from '../../core/errors.js'
import { type JobHandle, type JobRecord, jobStates, stateHint } from '../../core/job/job.js'
import { storedError } from '../../core/job/job-failures.js'
import { areSet, checkFields, type FieldChanges } from '../../core/job/job-fields.js'
import type { WaitReason } from '../../core/job/wait-reason.js'
import { describe } from '../../core/messages/describe.js'
import type { Packing } from '../../core/packing/packing.js'
import type { Clock } from '../../core/platform/clock.js'
import type { Registry } from '../../core/registry.js'
import { isNameOf, refuseNoTask, type TaskOf } from '../../core/task/any-task.js'
import { callForms, callOptions, checkedReason, refuseMore } from '../../core/values/call-check.js'
import { defined } from '../../core/values/defined.js'
import { type Duration, durationMs } from '../../core/values/duration.js'
import { isListenerId, isQueueName, queueNameForm } from '../../core/values/ids.js'
import type { Morgue, Page, Records, StoredJob } from '../../stores/contract/job-records.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import { stepsOf } from '../../stores/contract/steps.js'
import type { Store } from '../../stores/contract/store.js'
import { waitingIn } from '../../stores/rules/queue-counts.js'
import { holdsOn, recordOf, wholeRecord } from '../jobs/job-record.js'
import { explainedJob, explainedQueue } from '../jobs/wait-facts.js'
import { morgueOf, recordsOf } from '../store-facets.js'
import { ChosenJobs, type JobChoice, type VerbOptions } from './chosen-jobs.js'
import {
  type FilteredSteps,
  filterForms,
  type JobFilter,
  type ListFilter,
  listFilterOf,
  type ShownJobs,
} from './job-filter.js'
import { type PlaceChange, placeOf } from './job-place.js'
import { enqueuedAgain, type OtherInput, type Repeater, revivedWith } from './job-repeat.js'
import { LimitsAdmin } from './limits-admin.js'
import { type LiveFeed, type LiveOptions, liveFeed } from './live-feed.js'
import type { AdminVerb } from './operator-verbs.js'
import { type HistoryOptions, type QueueHistory, queueHistories } from './queue-history.js'
import {
  depthsIn,
  type JobPage,
  type ListOptions,
  limitOf,
  lookInto,
  noJobs,
  orderOf,
  type QueueLook,
} from './queue-looks.js'
import { type DrainOptions, type LongActionOptions, patientTotal, type StepLoop, total } from './step-loop.js'
import { type GroupChoice, ThrottleAdmin } from './throttle-admin.js'

/** @internal */
export interface AdminParts {
  readonly connect: () => Promise<Store>
  /** Connects without opening a queue, so that a queue whose declaration is refused can be examined. */
  readonly look: () => Promise<Store>
  readonly packing: Packing
  /** The known tasks, whose rules hold for its jobs. */
  readonly registry: Registry
  /** What enqueues jobs again. */
  readonly repeater: Repeater
  /** What the caller may see of a job. Default: all of it. */
  readonly shown?: (job: JobRecord) => JobRecord
  /** Whether `shown` may change more than payloads. Default false. */
  readonly isRedacted?: boolean
  /** Ends the feeds. */
  readonly closing: AbortSignal
  readonly clock: Pick<Clock, 'now'>
}

const { signal: signalForm, hook, own, text, flag } = callForms
const progressForms = { signal: signalForm, onProgress: hook }
const checkDrain = callOptions('drain', progressForms)
const checkReshard = callOptions('reshard', progressForms)
const checkMove = callOptions('move', progressForms)
const checkList = callOptions('jobs.list', { task: own, state: own, by: own, cursor: text, limit: own, ...filterForms })
const checkDeadList = callOptions('morgue.list', { task: own, by: own, cursor: text, limit: own, ...filterForms })
const checkRevive = callOptions('morgue.revive', { members: flag, input: own })
const checkAgain = callOptions('jobs.enqueueAgain', { input: own })
const checkFail = callOptions('jobs.fail', { delay: own, last: flag })
const checkForget = callOptions('jobs.forgetStep', { signal: flag })

/** The interval at which a drain checks whether it is done. */
const drainLookMs = 100

/** The same limit as in a configuration. */
export const mostShards = 1_024

export class QueueAdmin {
  readonly name: string
  /** Its throttle: the counted starts, a way to change the limits, and what holds the queue and its groups. */
  readonly throttle: ThrottleAdmin
  /** Its other limits that hold in all processes: those of running and waiting jobs, of crashes and of retention. */
  readonly limits: LimitsAdmin
  readonly #parts: AdminParts
  readonly #view: ShownJobs
  readonly #total: StepLoop
  readonly #chosen: ChosenJobs
  readonly #patientTotal: StepLoop

  /**
   * `loop` runs the steps of its actions. Default: until they are done.
   * @internal
   */
  constructor(name: string, parts: AdminParts, loop?: StepLoop) {
    const { connect, look, packing, registry, shown, isRedacted = false, clock } = parts
    this.name = name
    this.throttle = new ThrottleAdmin(name, look, connect, clock)
    this.limits = new LimitsAdmin(name, look, connect)
    this.#parts = parts
    this.#view = {
      shown: (job) => (shown === undefined ? recordOf(job, packing) : shown(recordOf(job, packing))),
      isRedacted,
    }
    this.#total = loop ?? total
    const now = () => clock.now()
    this.#chosen = new ChosenJobs({ queue: name, registry, connect, look, now, view: this.#view, loop: this.#total })
    this.#patientTotal = loop ?? patientTotal
    refuseMore('jobs.', this.jobs, {
      promised: {
        list: 1,
        get: 1,
        count: 1,
        explain: 1,
        cancel: 2,
        delete: 1,
        runNow: 1,
        reschedule: 2,
        bury: 1,
        enqueueAgain: 2,
        fail: 3,
        forgetStep: 3,
        setFields: 2,
      },
    })
    refuseMore('morgue.', this.morgue, { promised: { get: 1, list: 1, revive: 2, delete: 1 } })
  }

  /**
   * The live events of its jobs in all processes: starts, progress, ends, burials. They are for display, not for work
   * that must be done: each event arrives at most once, and `events.lost` marks gaps. An operator's changes to waiting
   * jobs are not included. Throws `InvalidArgumentError` for an invalid `buffer`.
   */
  events(options: LiveOptions = {}): LiveFeed {
    return liveFeed(this.name, this.#parts.connect, this.#parts.closing, options)
  }

  /**
   * The counts of its jobs for each minute of the last hour, or of another span, over all processes. Each process
   * reports once a minute and when its mill is closed. Jobs of `enqueueIn` are not counted as enqueued. Throws
   * `InvalidArgumentError`, or `UnsupportedByStoreError` if the store keeps no history.
   */
  async history(options: HistoryOptions = {}): Promise<QueueHistory> {
    const [history] = await queueHistories(await this.#parts.look(), [this.name], options, this.#parts.clock.now())
    return history!
  }

  /**
   * Its counts and the workers that serve it. Does not open the queue, so it also works if the declaration is refused.
   * Throws `UnknownQueueError` if the store has no such queue.
   */
  async look(): Promise<QueueLook> {
    const store = await this.#parts.look()
    const [{ depths }, workers = []] = await Promise.all([store.depth([this.name]), store.workers?.list()]).catch(
      (error: unknown) => {
        if (!hasCode(error, 'queue-unknown')) throw error
        throw new UnknownQueueError(this.name, [], true, { cause: error })
      },
    )
    return { depth: depths[0]!, workers: workers.filter(({ queues }) => queues.includes(this.name)) }
  }

  /**
   * Its counts: jobs by state, waiting payloads, lag, processed and failed jobs; for an ordered queue also the lag of
   * each shard. Its length is `fresh + retries`.
   */
  async depth(): Promise<QueueDepth> {
    const { depths } = await depthsIn(await this.#parts.look(), [this.name], () => this.#isDeclared)
    return depths[0]!
  }

  /**
   * Why the first of its ready jobs has not begun, the most decisive reason first; also that it drains. Empty: no job is
   * ready, and the queue is neither paused nor drained. Throws `UnsupportedByStoreError` if the store keeps no records.
   *
   * @example
   * for (const { why, text } of await mill.queue('mail').explain()) console.log(why, text)
   */
  async explain(): Promise<WaitReason[]> {
    const { isRedacted, shown } = this.#view
    const isGroupHidden = (job: StoredJob) => isRedacted && shown(job).group !== job.group
    return explainedQueue(await this.#parts.look(), this.name, this.#parts.clock.now(), isGroupHidden)
  }

  /**
   * Starts no job from now on; running ones go on. With `group` no job of that group: its jobs are kept, the others go
   * on, and `throttle.holds()` lists it. Throws `UnsupportedByStoreError` for a group on a store without throttles.
   */
  async pause(options?: GroupChoice): Promise<void> {
    if (options === undefined) await (await this.#records()).pause(this.name)
    else await this.throttle.pauseGroup(options)
  }

  /** Ends a pause or a drain of the queue; with `group` the pause of that group alone. Holds go on. */
  async resume(options?: GroupChoice): Promise<void> {
    if (options === undefined) await (await this.#records()).resume(this.name)
    else await this.throttle.resumeGroup(options)
  }

  /**
   * Refuses new jobs from now on, and resolves when no job waits or runs. It refuses them until `resume()`, even if
   * `signal` ends the waiting; it then rejects with the signal's reason.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    checkDrain(options)
    const { signal, onProgress } = options
    signal?.throwIfAborted()
    await (await this.#records()).drain(this.name)
    for (;;) {
      const depth = await this.depth()
      const [waiting, { running }] = [waitingIn(depth), depth]
      onProgress?.({ waiting, running })
      if (waiting + running === 0) return
      await delay(drainLookMs, undefined, signal && { signal }).catch(() => {})
      signal?.throwIfAborted()
    }
  }

  /**
   * Removes waiting and dead jobs. Running jobs stay, and so do payloads that wait for them in an ordered queue.
   * Resolves with the number.
   */
  async clear(): Promise<number> {
    const records = await this.#records()
    return this.#total(() => records.clear(this.name))
  }

  /**
   * Spreads an ordered queue over `shards` shards, 1 … 1,024. Meanwhile no job is granted: running jobs finish, and new
   * ones are accepted. Every job keeps its payloads, times and counts. Resolves with the number of moved jobs, 0 if
   * nothing changes. After an interruption, also by `signal`, call it again with the same number to go on; concurrent
   * calls share the work. Throws `ConfigConflictError` while another number is under way, `InvalidArgumentError` for a
   * plain queue, and for several shards with `maxRunning: { perGroup }`.
   */
  async reshard(shards: number, options: LongActionOptions = {}): Promise<number> {
    checkReshard(options)
    if (!Number.isInteger(shards) || shards < 1 || shards > mostShards)
      throw new InvalidArgumentError(
        `the shards of queue '${this.name}' must be a whole number from 1 to ${mostShards}; got ${describe(shards)}.`,
      )
    const records = await this.#records()
    return this.#patientTotal(() => records.reshard(this.name, shards), options)
  }

  /**
   * Moves the waiting and dead jobs of this ordered queue to another, with their payloads, scores, times and counts;
   * payloads join those of the same id there. Resolves with the number of moved jobs. Running jobs, and jobs enqueued
   * here meanwhile, are left: move again later. After an interruption, also by `signal`, nothing is lost: call it
   * again. Concurrent calls move each job once. Throws `UnknownQueueError` if the store has no queue `to`,
   * `InvalidArgumentError` if one of the two is plain.
   */
  async move(to: string, options: LongActionOptions = {}): Promise<number> {
    checkMove(options)
    if (!isQueueName(to)) throw new InvalidArgumentError(`a queue name must be ${queueNameForm}; got ${describe(to)}.`)
    const records = await this.#records()
    return this.#patientTotal(() => records.move(this.name, to), options)
  }

  /**
   * The steps of a verb on the jobs that a filter chooses, from a cursor on. Throws `InvalidArgumentError`.
   * @internal
   */
  filteredSteps(
    verb: AdminVerb,
    where: JobFilter,
    { cursor, ...how }: { readonly cursor?: string | undefined } & VerbOptions,
  ): Promise<FilteredSteps> {
    return this.#chosen.steps(where, verb, how, cursor)
  }

  /**
   * Steps that count the jobs that a filter chooses, and change nothing.
   * @internal
   */
  countSteps(where: JobFilter, cursor?: string): Promise<FilteredSteps> {
    return this.#chosen.countSteps(where, cursor)
  }

  readonly jobs = {
    list: async <Input = unknown, Result = unknown>(
      options: ListOptions<Input, Result> = {},
    ): Promise<JobPage<Input, Result>> => {
      checkList(options)
      const { task, state, by = 'time', cursor, limit = 50, ...filter } = options
      if (task !== undefined) refuseNoTask(task, 'list({ task })')
      if (state !== undefined && !jobStates.includes(state)) {
        throw new InvalidArgumentError(
          `state must be one of ${jobStates.join(', ')}; got ${describe(state)}.${stateHint(state)}`,
        )
      }
      const query = {
        by: orderOf(by, ['id', 'time', 'retry']),
        limit: limitOf(limit),
        ...defined({ state }),
        ...(cursor && { cursor }),
      }
      return this.#page((store, ofGroup) => recordsOf(store).list(this.name, { ...query, ...ofGroup }), task, filter)
    },
    /**
     * The job, or undefined if nothing is kept of it. In an ordered queue the live one; if there is none, its entry in
     * the morgue. A job that was cancelled after it had begun is found with its input and log for an hour, or with an id
     * of your own for `idempotency`.
     */
    get: async (id: string | number): Promise<JobRecord | undefined> => {
      const asked = await this.#chosen.idOf(id)
      return this.#record(await this.#read((store) => recordsOf(store).get(this.name, asked), undefined))
    },
    /**
     * How many jobs of the queue a filter chooses, in all states or in its `state`; page by page, so it takes time in a
     * queue of millions. Throws `InvalidArgumentError`, `UnknownQueueError`.
     */
    count: async (where: JobFilter): Promise<number> => {
      return this.#total((await this.countSteps(where)).step)
    },
    /** As `explain()` of a handle to the job. An empty list also if nothing is kept of it. */
    explain: async (id: string | number): Promise<WaitReason[]> => {
      const job = await this.jobs.get(id)
      return job === undefined ? [] : explainedJob(await this.#parts.look(), job, this.#parts.clock.now())
    },
    /**
     * Cancels jobs: waiting ones never run; the worker of a running one learns of it at the next beat. In an ordered
     * queue the waiting payloads go at once, and those of a running job when it ends, unless it completes; its batch is
     * not aborted. Resolves with the number, without jobs that were cancelled already.
     */
    cancel: async (where: JobChoice, reason?: string) => {
      const why = checkedReason('jobs.cancel', reason)
      return this.#chosen.act(where, 'cancel', { reason: why })
    },
    /**
     * Removes waiting jobs, in an ordered queue with all their payloads, and kept results. Running and dead jobs stay,
     * with the payloads that wait for them. Resolves with the number. Throws `JobRunningError`, after deleting the
     * others, if one of the ids runs. Throws `JobElsewhereError` if it deleted nothing, and another queue has one of
     * the ids.
     */
    delete: (where: JobChoice) => this.#chosen.delete(where),
    /** Makes scheduled jobs due now; their attempts stay. Resolves with the number. */
    runNow: (where: JobChoice) => this.#chosen.act(where, 'run-now'),
    /**
     * Changes the priority, the due time, or both of jobs that wait for a worker; each in one step of the store, a filter
     * page by page. One that becomes due later is scheduled; a scheduled one that becomes due now goes behind the ready jobs
     * of its priority; all others keep their places among those of their priority. Attempts, group, expiry and the end of a
     * sleep stay. Resolves with the number: jobs that run or have ended, that wait for others or for a signal, and suspects
     * stay as they are. Throws `InvalidArgumentError`, also for an ordered queue; `UnsupportedByStoreError`.
     *
     * @example
     * await mill.queue('mail').jobs.reschedule(['welcome-42'], { priority: 10, delay: '5m' })
     */
    reschedule: async (where: JobChoice, place: PlaceChange): Promise<number> => {
      placeOf(place, this.#parts.clock.now())
      return this.#chosen.act(where, 'reschedule', { place })
    },
    /** Buries waiting jobs, in an ordered queue with all their payloads. Resolves with the number. */
    bury: (where: JobChoice) => this.#chosen.act(where, 'bury'),
    /**
     * Enqueues a job like this one under a new id, whatever state it is in: with its task, queue, meta and priority, and
     * with its input or the given `input`, which the task's schema checks. The record of the new job has this one as
     * `repeatOf`; this one does not change. Undefined if only its id is kept. Throws `InvalidArgumentError` for an ordered
     * job and for one that waits for others, `CodecError` if its input cannot be read, and the errors of `mill.enqueue()`.
     *
     * @example
     * await mill.queue('mail').jobs.enqueueAgain('welcome-42', { input: { to: 'ada@example.com' } })
     */
    enqueueAgain: async (id: string | number, options: OtherInput = {}): Promise<JobHandle | undefined> => {
      checkAgain(options)
      const asked = await this.#chosen.idOf(id)
      return enqueuedAgain(await (await this.#records()).get(this.name, asked), options, this.#repeatParts)
    },
    /**
     * Ends the current claim of a running job as a failure, due again after `delay` (default: at once); later reports
     * of its worker are refused. `last` buries it, in an ordered queue only its oldest payload. Default of `last`: true
     * if its declared task has no attempts left, or if it runs in a process of its own (isolated task, listener), which
     * works on until it learns of this. Resolves to false if the job does not run.
     */
    fail: async (
      id: string | number,
      reason: string,
      options: { readonly delay?: Duration; readonly last?: boolean } = {},
    ): Promise<boolean> => {
      checkFail(options)
      const delayMs = durationMs(options.delay ?? 0, 'fail({ delay })')
      const asked = await this.#chosen.idOf(id)
      const records = await this.#records()
      const job = await records.get(this.name, asked)
      const last = options.last ?? this.#isLastAttempt(job)
      const failed = job && { attempt: job.attempt, at: this.#parts.clock.now() }
      const error = storedError(reason, job?.error, failed)
      return (await records.fail(this.name, asked, { delayMs, reason: error, last })) === 'ok'
    },
    /**
     * Forgets a step or a sleep of a job that has not completed, so its next run makes it again. With `signal: true` it
     * forgets the signal of this name, or that nobody has sent it in time: the next run waits for it anew, and it may be sent
     * again. Default: false. A run that is under way has read both already. False: the job has none of this name. Throws
     * `InvalidArgumentError` and `UnsupportedByStoreError`.
     */
    forgetStep: async (
      id: string,
      name: string,
      options: { readonly signal?: boolean | undefined } = {},
    ): Promise<boolean> => {
      checkForget(options)
      if (typeof name !== 'string')
        throw new InvalidArgumentError(`the name of a step must be a text; got ${describe(name)}.`)
      const asked = await this.#chosen.idOf(id)
      const steps = stepsOf(await this.#parts.connect())
      return steps.forget({ queue: this.name, id: asked }, name, options.signal === true ? 'signal' : 'step')
    },
    /** Like `fields.set()` of a handle to the job: false if nothing is kept of it. */
    setFields: async (id: string | number, fields: FieldChanges): Promise<boolean> => {
      checkFields(fields)
      const asked = await this.#chosen.idOf(id)
      return areSet(asked, await (await this.#records()).setFields(this.name, asked, fields))
    },
  }

  readonly morgue = {
    /** The dead job, or undefined if there is none; in an ordered queue even if a live job has the same id. */
    get: async (id: string | number): Promise<JobRecord | undefined> => {
      const asked = await this.#chosen.idOf(id)
      return this.#record(await this.#read((store) => morgueOf(store).get(this.name, asked), undefined))
    },
    list: async <Input = unknown, Result = unknown>(
      options: Omit<ListOptions<Input, Result>, 'state' | 'by'> & { readonly by?: 'id' | 'time' } = {},
    ): Promise<JobPage<Input, Result>> => {
      checkDeadList(options)
      const { task, by = 'time', cursor, limit = 50, ...filter } = options
      if (task !== undefined) refuseNoTask(task, 'list({ task })')
      const query = { by: orderOf(by, ['id', 'time']), limit: limitOf(limit), ...(cursor && { cursor }) }
      return this.#page((store, ofGroup) => morgueOf(store).list(this.name, { ...query, ...ofGroup }), task, filter)
    },
    /**
     * Puts dead jobs back, ready now, with all attempts. In an ordered queue the payloads join those of their id, even
     * of a running job. A job that waited for others waits again for those that are missing; one that was cancelled,
     * deleted or expired cannot come any more, and the job then stays dead. `members`: whether the dead jobs that it
     * waited for are revived too, first. Default false. Resolves with the number of all.
     *
     * `input`, for one id: the job begins anew with this input, which the task's schema checks. It keeps its id, task, meta,
     * priority and origin; its log, fields and errors go, and its group is said anew. One step of the store puts it in the
     * place of the dead job. Throws `InvalidArgumentError`, with nothing changed, for a job whose runs have left steps or a
     * checkpoint, a join, a member of one and an ordered job; `QueueFullError` and the other errors of `mill.enqueue()`.
     */
    revive: async (
      where: JobChoice,
      options: { readonly members?: boolean | undefined } & OtherInput = {},
    ): Promise<number> => {
      checkRevive(options)
      if (Object.hasOwn(options, 'input')) return this.#revivedWith(where, { input: options.input }, options.members)
      return this.#chosen.revive(where, options.members === true)
    },
    /** Removes dead jobs for good. Resolves with the number. */
    delete: (where: JobChoice) => this.#chosen.act(where, 'delete-dead'),
  }

  get #repeatParts(): Repeater & { readonly packing: Packing; readonly registry: Registry } {
    const { repeater, packing, registry } = this.#parts
    return { ...repeater, packing, registry }
  }

  async #revivedWith(where: JobChoice, other: Required<OtherInput>, members: boolean | undefined): Promise<number> {
    if (!Array.isArray(where) || where.length !== 1 || members)
      throw new InvalidArgumentError(
        'morgue.revive({ input }) takes one id, and no members: another input is of one job. Nothing was changed.',
      )
    const asked = await this.#chosen.idOf(where[0])
    return revivedWith(await (await this.#morgue()).get(this.name, asked), other, this.#repeatParts)
  }

  /** Whether a failure from outside leaves the job no attempts. A job of an unknown task has some. */
  #isLastAttempt(job: StoredJob | undefined): boolean {
    if (job === undefined) return false
    if (job.worker !== undefined && isListenerId(job.worker)) return true
    const { registry } = this.#parts
    const task = registry.orderedTask(this.name) ?? registry.find(job.task)
    if (task?.kind === 'plain' && task.isolation !== undefined) return true
    return task !== undefined && job.attempt > task.retry.max
  }

  get #isDeclared(): boolean {
    return this.#parts.registry.queues.has(this.name)
  }

  /** `nothing` if the queue is declared, but not stored yet. */
  async #read<T>(ask: (store: Store) => Promise<T>, nothing: T): Promise<T> {
    const store = await this.#parts.look()
    return lookInto(this.#isDeclared, () => ask(store), nothing)
  }

  async #records(): Promise<Records> {
    return recordsOf(await this.#parts.connect())
  }

  async #morgue(): Promise<Morgue> {
    return morgueOf(await this.#parts.connect())
  }

  async #record(job: StoredJob | undefined): Promise<JobRecord | undefined> {
    if (job === undefined) return undefined
    return wholeRecord(await this.#parts.look(), job, this.#parts.packing, this.#parts.clock.now())
  }

  async #recordsOf(jobs: readonly StoredJob[]): Promise<JobRecord[]> {
    const heldBy = await holdsOn(await this.#parts.look(), this.name, jobs, this.#parts.clock.now())
    return jobs.map((job) => recordOf(job, this.#parts.packing, heldBy(job)))
  }

  /** The jobs of the task, if one is given. */
  async #page<Input, Result>(
    list: (store: Store, ofGroup: { readonly group?: string }) => Promise<Page>,
    task: TaskOf<Input, Result> | undefined,
    filter: ListFilter,
  ): Promise<JobPage<Input, Result>> {
    const { matches, ...ofGroup } = listFilterOf(filter, this.#view)
    const { jobs, cursor } = await this.#read((store) => list(store, ofGroup), noJobs)
    const listed = jobs.filter((job) => (task === undefined || isNameOf(task, job.task)) && matches(job))
    const records = (await this.#recordsOf(listed)) as JobRecord<Input, Result>[]
    return { jobs: records, ...(cursor && { cursor }) }
  }
}

refuseMore('', QueueAdmin.prototype, {
  promised: { history: 1, look: 0, depth: 0, explain: 0, pause: 1, resume: 1, drain: 1, clear: 0, reshard: 2, move: 2 },
  direct: { events: 1 },
})
