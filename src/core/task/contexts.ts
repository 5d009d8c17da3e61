/** Contexts: the second arguments of handlers, of one job, of a batch of jobs, and of a batch of ordered jobs. */

import type { JobMeta, RunningJob } from '../job/job.js'
import type { FieldWriter } from '../job/job-fields.js'
import type { JobOrigin } from '../job/job-origin.js'
import type { Duration } from '../values/duration.js'
import type { EnqueueInOptions, SqliteDatabase } from './enqueue-in.js'
import type {
  BatchChildOptions,
  ChildOptions,
  EnqueueArguments,
  EnqueueOptionsOf,
  HandlesOf,
  JobsOf,
} from './enqueue-options.js'
import type { Flow, FlowHandles } from './flow.js'
import type { Joined, JoinSets } from './join-sets.js'
import type { HoldOptions, HoldTime } from './outcome.js'
import type { AnySignal, SignalData } from './signal.js'
import type { DefinedTask, HandleOf, TaskInput } from './task-definition.js'

/** The second argument of a handler, after the input. `Context`: what it needs of the `context` of its mill. */
export interface JobContext<Context = unknown> {
  /** Aborted when the time limit is over, the lease is lost, the job is cancelled or the worker's grace is over; `reason` is a typed error. */
  readonly signal: AbortSignal
  readonly job: RunningJob
  /**
   * The number of the slot in which the job runs: 0 … `concurrency` − 1 of its worker. No other job that runs in this
   * worker has the same, so it can choose one of several devices. A process that another worker adopts keeps its
   * number, and so the slot, unless that slot is taken.
   */
  readonly slot: number
  /**
   * What the handler needs besides its input, as `context` of the mill opened it. The handler says its type:
   * `ctx: JobContext<{ db: Database }>`. Throws `ConfigError` if the mill has no `context`.
   *
   * @example
   * export const bill = defineTask({
   *   name: 'bill',
   *   async run(order: { id: string }, ctx: JobContext<{ mailer: Mailer }>) {
   *     await ctx.context.mailer.send('ada@example.com', `the bill of ${order.id}`)
   *   },
   * })
   */
  readonly context: Context
  /**
   * Enqueues a job as a child of this one, like `mill.enqueue()` and with the same errors. The child knows its parent.
   * Its id follows from this job and this call, so a later attempt does not enqueue it again; `key` says which calls
   * count as the same. Rejects with the reason of `signal` once that is aborted, and with `InvalidArgumentError` once
   * the run has ended.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, ChildOptions>): Promise<HandleOf<T>>
  /** Enqueues many jobs of one task as children, like `mill.enqueueMany()`. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & ChildOptions,
  ): Promise<HandleOf<T>[]>
  /** Enqueues jobs of several tasks as children: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, ChildOptions>,
  ): Promise<HandlesOf<Tasks>>
  /** Enqueues a job as a child of this one in your own transaction, like `mill.enqueueIn()`. */
  enqueueIn<T extends DefinedTask>(
    connection: SqliteDatabase,
    task: T,
    ...args: EnqueueArguments<T, string, ChildOptions & EnqueueInOptions>
  ): HandleOf<T>
  enqueueIn<T extends DefinedTask>(
    tx: object,
    task: T,
    ...args: EnqueueArguments<T, string, ChildOptions & EnqueueInOptions>
  ): Promise<HandleOf<T>>
  /**
   * Ends this job in your own transaction, on the database of a Postgres store: what the transaction writes and the end of
   * the job are committed together, or not at all. Make it the last statement before the commit, and commit before the
   * handler returns; the handler's result is not kept. If the lease is lost it rejects with `LeaseLostError`: let that roll
   * the transaction back. `tx` as for `mill.enqueueIn()`. Rejects with `UnsupportedByStoreError` on other stores.
   *
   * @example
   * await db.transaction(async (tx) => {
   *   await tx.insert(payments).values(payment)
   *   await ctx.completeIn(tx)
   * })
   */
  completeIn(tx: object): Promise<void>
  /**
   * Enqueues a graph of jobs as children of this one, like `mill.flow()`. A later attempt that builds the same graph
   * enqueues nothing; with a `key`, none that has the key does.
   *
   * @example
   * await ctx.flow((f) => {
   *   const page = f.job(crawl, { url: 'https://example.com' })
   *   for (const month of ['2026-10', '2026-11']) f.job(report, { month }, { after: { page } })
   * })
   */
  flow<Returned>(build: (flow: Flow) => Returned, options?: ChildOptions): Promise<FlowHandles<Returned>>
  /**
   * Reports the progress: `fraction` 0 … 1 and an optional note of at most 1,000 characters. A number from 2 on counts
   * as a percentage, as in other queues; other values out of range are clamped. The next beat sends it, at most one a
   * second; the latest wins. Never throws and never delays the handler.
   */
  progress(fraction: number, note?: string): void
  /**
   * Adds a line to the job's log. The last 64 KiB are kept over all attempts. Sent within about a second. Never throws
   * and never delays the handler.
   */
  log(text: string): void
  /**
   * Holds the job's group, or its queue if it has no group, from the end of this run on: none of their jobs is started
   * for that time. For an answer that is no failure but says that no more calls are allowed: `ctx.hold(answer)`. Takes
   * what `hold()` takes, and never throws for what a server sends; the hold lasts at most `atMost` (default 1 h).
   * The longest hold of a run counts, and comes with its end whatever that is: a result, an error, an outcome. A lost
   * lease holds nothing, and so does a store without throttles. For a batch the groups of all its jobs are held. Throws
   * `InvalidArgumentError` once the run has ended.
   */
  hold(when: HoldTime, options?: HoldOptions): void
  /**
   * Stores a value that the next attempt finds in `lastCheckpoint`, whatever happens to this attempt. It replaces the
   * checkpoint before. Resolves once the store has it, and waits as long as the store is unavailable. Rejects with
   * `PayloadTooLargeError` or `CodecError` for a value that cannot be stored, with the reason of `signal` if this
   * attempt is over, and with `InvalidArgumentError` if its run has ended otherwise: await it before the handler returns.
   */
  checkpoint(value: unknown): Promise<void>
  /**
   * Writes fields of this job, which its record and listings show: `await ctx.fields.set({ node: 'eu-3' })`. Reads the
   * fields that anybody has set: `await ctx.fields.get()`. They stay as long as the job does, over all attempts. Resolves
   * once the store has answered, and waits as long as the store is unavailable. Rejects with the reason of `signal` if this
   * attempt is over, and with `UnsupportedByStoreError` on a store that keeps no records.
   */
  readonly fields: FieldWriter
  /**
   * The last value that an earlier attempt stored by `checkpoint`; undefined if there is none. Throws `CodecError` if
   * it cannot be decoded.
   */
  readonly lastCheckpoint: unknown
  /**
   * Calls the function and stores its result under this name. A later run of the job gets the result, and does not call
   * the function again, whatever happened to this run. A crash after the function and before the result is stored calls
   * it again, with the same `key`: give that to the services that it calls. The result is what the codec makes of it, in
   * the first run too; it has at most the bytes of an input, those of a job together 4 MiB. Steps may run side by side. A
   * job has at most 1,000 steps. If the function throws, the run has failed as if the handler had thrown.
   *
   * Throws `StepNameError` for a name given twice in this run, `InvalidJobError` for too many steps or results of too
   * many bytes, `PayloadTooLargeError`, `CodecError`, `UnsupportedByStoreError`, and the reason of `signal` if this run
   * is over.
   *
   * @example
   * const paid = await ctx.step('charge', ({ key }) => charge(order, { idempotencyKey: key }))
   */
  step<T>(name: string, run: (call: StepCall) => T | Promise<T>): Promise<T>
  /**
   * Ends this run, and runs the job again after `time`. It takes no slot meanwhile, and no attempt is counted. In the next
   * run the call resolves at once. `name` is like that of a step. The run ends by an error that the handler must let through.
   *
   * @example
   * await ctx.sleep('cool-off', '3d')
   */
  sleep(name: string, time: Duration): Promise<void>
  /**
   * Waits for a signal that somebody sends to this job by `mill.signal()`. If it has come already, resolves at once with
   * its data. Otherwise it ends this run like `sleep()`, and the job waits, state `waiting`. In the run after the signal
   * the call resolves with its data. With a `timeout` it resolves with undefined if no signal has come in this time, and
   * up to 10 s later.
   *
   * @example
   * const answer = await ctx.waitFor(approved, { timeout: '7d' })
   */
  waitFor<S extends AnySignal>(signal: S): Promise<SignalData<S>>
  waitFor<S extends AnySignal>(
    signal: S,
    options: { readonly timeout?: Duration | undefined },
  ): Promise<SignalData<S> | undefined>
}

/** The argument of a step's function. */
export interface StepCall {
  /** The same for this step in every run of its job, and for no other step: an idempotency key. */
  readonly key: string
  /** That of the run. */
  readonly signal: AbortSignal
}

/** The second argument of the handler of a join, after the input. */
export interface JoinContext<Sets extends JoinSets = JoinSets, Context = unknown> extends JobContext<Context> {
  /**
   * What became of the jobs that this one waited for, by the names of its sets. One member: its result, or how it ended
   * if the set goes on. Many: their counts, and in their order each of them.
   */
  readonly joined: Joined<Sets>
}

/** The second argument of a batch task's handler, after the inputs. */
export interface BatchContext<Context = unknown>
  extends Pick<JobContext<Context>, 'slot' | 'context' | 'progress' | 'hold'> {
  /**
   * Aborted when the time limit is over, a lease is lost, every job of the batch is cancelled or the worker's grace is
   * over; `reason` is a typed error. It is not aborted while only some jobs of the batch are cancelled.
   */
  readonly signal: AbortSignal
  /** The properties that all jobs of the batch share. */
  readonly job: Pick<RunningJob, 'task' | 'queue'>
  /** The jobs, in the order of the inputs. */
  readonly jobs: readonly RunningJob[]
  /**
   * Fails the job of the input at this index only: it is retried, whatever the handler returns for it. A second call
   * for an index replaces its error. Throws `InvalidArgumentError` for an index that is not in this batch, for an
   * outcome such as `snooze('10m')` instead of an error, and after the run has ended.
   */
  fail(index: number, error: unknown): void
  /**
   * Enqueues a job as a child of one job of the batch, like `ctx.enqueue()` of other tasks. `parent` is the index of
   * that job, and may be left out if `size` is 1. Rejects with `InvalidArgumentError` for a parent that is not in this
   * batch.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, BatchChildOptions>): Promise<HandleOf<T>>
  /** Enqueues many jobs of one task as children, like `mill.enqueueMany()`. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & BatchChildOptions,
  ): Promise<HandleOf<T>[]>
  /** Enqueues jobs of several tasks as children: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, BatchChildOptions>,
  ): Promise<HandlesOf<Tasks>>
  /** Enqueues a graph of jobs as children, like `ctx.flow()` of other tasks. `parent` as for `enqueue()`. */
  flow<Returned>(build: (flow: Flow) => Returned, options?: BatchChildOptions): Promise<FlowHandles<Returned>>
}

/** One job of a batch. */
export interface OrderedJob {
  readonly id: string
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** As in `BatchContext.job`. */
  readonly fence: number
  /** Absent if it has none. */
  readonly group?: string
  readonly createdAt: Date
  readonly runAt: Date
  /** The error of the attempt before this one. */
  readonly lastError?: string
  /** Score, meta and origin of each payload, in the order in which the handler gets the payloads. */
  readonly payloads: readonly BatchPayload[]
}

/** One payload of a job of a batch, without its input. */
interface BatchPayload extends JobOrigin {
  readonly score: number
  readonly meta: JobMeta
}

/** The second argument of an ordered task's handler, after the payloads. */
export interface OrderedContext<Context = unknown>
  extends Pick<JobContext<Context>, 'slot' | 'context' | 'progress' | 'hold'> {
  /**
   * Aborted when the time limit is over, a lease is lost, every job of the batch is cancelled or the worker's grace is
   * over; `reason` is a typed error. It is not aborted while only some jobs of the batch are cancelled.
   */
  readonly signal: AbortSignal
  /**
   * The properties that all jobs of the batch share. `fence` grows with every claim of any of these ids. Pass it to the
   * systems you write to, and let them refuse a smaller one.
   */
  readonly job: Pick<RunningJob, 'task' | 'queue' | 'fence'>
  /** The jobs by id, in the order of the payloads. */
  readonly jobs: ReadonlyMap<string, OrderedJob>
  /**
   * Enqueues a job as a child of one job of the batch, like `ctx.enqueue()` of a plain task. `parent` names that job,
   * and may be left out if `batchSize` is 1. A later run of that id enqueues nothing twice as long as it gets the same
   * payloads; with a `key` the payloads do not matter. Payloads of an ordered task that were delivered already are
   * delivered again. Rejects with `InvalidArgumentError` for a parent that is not in this batch.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, BatchChildOptions>): Promise<HandleOf<T>>
  /** Enqueues many jobs of one task as children, like `mill.enqueueMany()`. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & BatchChildOptions,
  ): Promise<HandleOf<T>[]>
  /** Enqueues jobs of several tasks as children: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, BatchChildOptions>,
  ): Promise<HandlesOf<Tasks>>
  /** Enqueues a graph of jobs as children, like `ctx.flow()` of other tasks. `parent` as for `enqueue()`. */
  flow<Returned>(build: (flow: Flow) => Returned, options?: BatchChildOptions): Promise<FlowHandles<Returned>>
  /**
   * Fails this id only: it is retried, the others are not. A second call for an id replaces its error. A number is
   * converted to text. Throws `InvalidArgumentError` for an id that is not in this batch, for an outcome such as
   * `snooze('10m')` instead of an error, and after the run has ended.
   */
  fail(id: string | number, error: unknown): void
  /**
   * Says that the oldest `count` payloads of this id are done. They are completed, whatever becomes of the run: a
   * failure, a throw, a stop, `snooze()` or `bury()` is then for the others alone, which begin with this run as their
   * first attempt. So a last failure buries the payload after those that are done. If all are done, the id is
   * completed. A smaller count than before changes nothing. Nothing of it is stored before the run ends: after a crash
   * all payloads come again. Throws `InvalidArgumentError` for an id that is not in this batch, for a number that is
   * not from 0 to that of its payloads, and after the run has ended.
   */
  done(id: string | number, count: number): void
  /**
   * Whether payloads of this id were left for the next run, because there are more than `maxPayloads`. Throws
   * `InvalidArgumentError` for an id that is not in this batch.
   */
  more(id: string | number): boolean
}
