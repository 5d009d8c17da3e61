/** A task: the definition of one kind of work. Defining one opens no connection and starts nothing. */

import * as v from 'valibot'
import type { ConfigIssue } from '../errors.js'
import type { RunningJob } from '../job/job.js'
import { type Duration, furthestMs } from '../values/duration.js'
import { byteSize, callable, duration, exactly, whole } from '../values/option-check.js'
import { exponential } from './backoff.js'
import type { BatchContext, JobContext, JoinContext } from './contexts.js'
import { type DeathTask, onDeadOption } from './death.js'
import { type JoinSets, joinsOption, type MemberSet } from './join-sets.js'
import type { OutcomeValue } from './outcome.js'
import type { Schema } from './schema.js'
import { type AnySignal, isSignal } from './signal.js'
import {
  boundlessTime,
  checkedTask,
  headerOptions,
  type Needs,
  quotedName,
  type RetryOptions,
  refuseTask,
  retryOptions,
  type TaskHeader,
  type types,
  withHandler,
} from './task-definition.js'

/** The function that does the work. It returns a result or an outcome such as `snooze('10m')`, and throws to fail. */
export type Handler<Output, Return, Context = unknown> = (input: Output, ctx: JobContext<Context>) => Return

/** The type of `job.result()` if the handler returns `Return`. */
type ResultOf<Return> = Exclude<Awaited<Return>, OutcomeValue>

/** The type that the handler of a task may return; anything, if its result is not known yet. */
export type Returnable<Result> = unknown extends Result
  ? unknown
  : Result | OutcomeValue | Promise<Result | OutcomeValue>

/** The type that the handler of a batch task may return; anything, if the result of its jobs is not known yet. */
export type ReturnableByEach<Result> = unknown extends Result
  ? unknown
  : Returnable<readonly (Result | OutcomeValue)[]> | (undefined extends Result ? void | Promise<void> : never)

/** A job that was just buried because its retries are exhausted. */
export interface ExhaustedJob<Output> {
  readonly job: RunningJob
  readonly input: Output
  readonly error: unknown
}

export interface TaskOptions<
  Name extends string,
  Input,
  Output,
  Return,
  QueueName extends string = string,
  Context = unknown,
> extends IsolationOptions {
  /** Stored with every job; to rename a task, list the old name in `aliases`. */
  readonly name: Name
  /** The queue of its jobs. Default `'default'`. */
  readonly queue?: QueueName | undefined
  /**
   * The schema of the input, any Standard Schema. It validates the input when it is enqueued and again before it runs.
   * Default: anything is accepted, and the input has the type of `run`'s first parameter.
   */
  readonly input?: Schema<Input, Output> | undefined
  /** The handler. May be left out and attached on the worker's side with `task.handle(run)`. */
  readonly run?: Handler<Output, Return, Context> | undefined
  /**
   * An attempt that takes longer is aborted, abandoned and counted as a failure. `'none'`, for isolated tasks only: no
   * limit. Default `'60s'`.
   */
  readonly timeLimit?: Duration | 'none' | undefined
  /** An attempt that takes longer is reported as `job.slow` and goes on. Default: no report. */
  readonly slowAfter?: Duration | undefined
  /** The retry policy. For an isolated task `max` defaults to 0, so that work of hours does not start again unasked. */
  readonly retry?: RetryOptions | undefined
  /**
   * The group of a job, from its input: throttles, `maxRunning` and fairness count by it. At most 256 bytes, `''` for
   * none; a finite number is converted to text. Default: none.
   */
  readonly group?: ((input: Input) => string | number) | undefined
  /**
   * The job does not begin after this time from its enqueue: neither its first run nor a retry. Default for the
   * `expiresIn` of an enqueue. Default: never.
   */
  readonly expiresIn?: Duration | undefined
  /**
   * How long an id of your own is remembered after its job has ended; 0: not at all. Default: the mill's
   * `idempotency`.
   */
  readonly idempotency?: Duration | undefined
  /**
   * Whether the job may run now. False: the job is put back with the delay of its backoff (at least 1 s), and no
   * attempt is counted. Default: always.
   */
  readonly shouldRun?: ((input: Output, job: RunningJob) => boolean | Promise<boolean>) | undefined
  /**
   * Called after a job was buried because its retries are exhausted, as `max-retries` or `no-retries`, or because it
   * crashed too often, as `crashed`: then at most once, by the worker that finds the crash. An error that it throws is
   * reported and changes nothing.
   */
  readonly onExhausted?: ((exhausted: ExhaustedJob<Output>) => void | Promise<void>) | undefined
  /**
   * The task that gets one job for each death of a job of this task, with a `Death` as input: whatever brought the job to
   * the morgue, even if the process that did so died at that moment. Workers that serve the queue of the dead job enqueue
   * it, at once or within seconds. It covers jobs whose task had `onDead` when they were enqueued. Not on stores without
   * the trait `deaths`. Default: none.
   */
  readonly onDead?: DeathTask<NoInfer<Input>> | undefined
  /**
   * The signals that an operator may send to its jobs, by the command line, the dashboard or over HTTP: their data is
   * checked by the schema of the signal. Code sends any signal, named here or not. Default: none.
   */
  readonly signals?: readonly AnySignal[] | undefined
  /** Former names, under which jobs may still be stored. */
  readonly aliases?: readonly string[] | undefined
}

/**
 * A defined task. `Input` is the type that producers pass, `Output` the type that the handler gets, `Result` the type
 * that it returns.
 */
export interface Task<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  Result = unknown,
  QueueName extends string = string,
  Context = unknown,
> extends TaskHeader<Name, Input, Output, Result, QueueName, Context> {
  readonly kind: 'plain'
  /** Undefined: its handler gets one job at a time. */
  readonly batch: undefined
  /** Undefined: its jobs wait for no others. */
  readonly joins: undefined
  /** Undefined: its jobs run in the worker. */
  readonly isolation: Isolation | undefined
  readonly group: ((input: Input) => string | number) | undefined
  /** Undefined: its jobs never expire, unless their enqueue says so. */
  readonly expiresInMs: number | undefined
  /** Undefined: as the mill has it. */
  readonly idempotencyMs: number | undefined
  readonly shouldRun: ((input: Output, job: RunningJob) => boolean | Promise<boolean>) | undefined
  readonly onExhausted: ((exhausted: ExhaustedJob<Output>) => void | Promise<void>) | undefined
  /** The task that gets a job for each death of its jobs. */
  readonly onDead: DeathTask | undefined
  /** The signals that an operator may send to its jobs. */
  readonly signals: readonly AnySignal[]
  /** The handler; undefined if only producers know this task. */
  readonly run: Handler<Output, unknown, Context> | undefined
  /**
   * Attaches the handler, once, and returns the same task, typed by what the handler needs: give that to the mill. The
   * handler must return the type given to `returns`, if that was called. Throws `ConfigError` if there is a handler
   * already.
   */
  handle<Return extends Returnable<Result>, Needed = unknown>(
    run: Handler<Output, Return, Needed>,
  ): Task<Name, Input, Output, unknown extends Result ? ResultOf<Return> : Result, QueueName, Needed>
  /**
   * Types the result of a task whose handler is attached elsewhere by `handle`, for its producers. Returns the same
   * task and checks nothing at run time.
   */
  returns<Returned>(): Task<Name, Input, Output, Returned, QueueName, Context>
}

/** A batch task is one whose handler gets several jobs at once, each of which is still a job of its own. */
export interface BatchOptions {
  /** The most jobs that one call of the handler gets, 1 … 1,000. */
  readonly size: number
  /**
   * How long the first job of an incomplete batch waits for others before the handler is called, at most `'1m'`. It is
   * in hand meanwhile, and its batch has a slot. A batch does not wait if leases are not renewed or the queue has a
   * throttle. Default 0.
   */
  readonly wait?: Duration | undefined
}

/** The batch options with every default filled in. */
interface Batch {
  readonly size: number
  readonly waitMs: number
}

/**
 * The function that does the work of several jobs. It returns an array with a result or an outcome for each job, in the
 * order of the inputs. It may also return nothing, or one outcome for all. It throws to fail all of them;
 * `ctx.fail(index, error)` fails one.
 */
export type BatchHandler<Output, Return, Context = unknown> = (inputs: Output[], ctx: BatchContext<Context>) => Return

/** The type of `job.result()` if the handler returns `Return` for all jobs of a batch. */
type ResultOfEach<Return> = Exclude<EachOf<Exclude<Awaited<Return>, OutcomeValue>>, OutcomeValue>
type EachOf<Returned> = Returned extends readonly (infer Each)[] ? Each : Returned

/** Options of a task whose handler is given several jobs at once. */
export interface BatchTaskOptions<
  Name extends string,
  Input,
  Output,
  Return,
  QueueName extends string = string,
  Context = unknown,
> extends Omit<
    TaskOptions<Name, Input, Output, never, QueueName>,
    'run' | 'timeLimit' | 'signals' | keyof IsolationOptions
  > {
  /** Its handler gets up to `size` jobs at once, and takes one slot. Not together with `isolate`. */
  readonly batch: BatchOptions
  /** The handler. May be left out and attached on the worker's side with `task.handle(run)`. */
  readonly run?: BatchHandler<Output, Return, Context> | undefined
  /** A run that takes longer is aborted, abandoned and counted as a failure of each of its jobs. Default `'60s'`. */
  readonly timeLimit?: Duration | undefined
}

/** A defined batch task. `Input`, `Output` and `Result` are those of one job. */
export interface BatchTask<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  Result = unknown,
  QueueName extends string = string,
  Context = unknown,
> extends TaskHeader<Name, Input, Output, Result, QueueName, Context>,
    Pick<
      Task<Name, Input, Output>,
      'kind' | 'group' | 'expiresInMs' | 'idempotencyMs' | 'shouldRun' | 'onExhausted' | 'onDead'
    > {
  readonly batch: Batch
  readonly joins: undefined
  readonly isolation: undefined
  /** The handler; undefined if only producers know this task. */
  readonly run: BatchHandler<Output, unknown, Context> | undefined
  /** Like `handle` of other tasks. */
  handle<Return extends ReturnableByEach<Result>, Needed = unknown>(
    run: BatchHandler<Output, Return, Needed>,
  ): BatchTask<Name, Input, Output, unknown extends Result ? ResultOfEach<Return> : Result, QueueName, Needed>
  /** Like `returns` of other tasks: the result of one job. */
  returns<Returned>(): BatchTask<Name, Input, Output, Returned, QueueName, Context>
}

/** The function that does the work of a join, once its members have ended. */
export type JoinHandler<Output, Return, Sets extends JoinSets, Context = unknown> = (
  input: Output,
  ctx: JoinContext<Sets, Context>,
) => Return

/** Options of a task whose jobs wait for others. */
export interface JoinTaskOptions<
  Name extends string,
  Input,
  Output,
  Return,
  Sets extends JoinSets,
  QueueName extends string = string,
  Context = unknown,
> extends Omit<TaskOptions<Name, Input, Output, never, QueueName>, 'run'> {
  /**
   * The jobs that a job of this task waits for, by a name each: a task is exactly one of its jobs, `many(task)` any
   * number. The call that enqueues it gives their inputs by these names as `after`. The job is ready once all have ended,
   * and its handler finds their results in `ctx.joined`.
   *
   * @example
   * export const report = defineTask({
   *   name: 'report',
   *   joins: { page: crawl, mails: many(sendEmail) },
   *   async run(input: { month: string }, ctx) {
   *     for await (const { sentTo } of ctx.joined.mails) console.log(input.month, sentTo)
   *   },
   * })
   * await mill.enqueue(report, { month: '2026-11' }, {
   *   after: { page: { url: 'https://example.com' }, mails: [{ to: 'ada@example.com' }] },
   *   within: '2d',
   * })
   */
  readonly joins: Sets
  /** The handler. May be left out and attached on the worker's side with `task.handle(run)`. */
  readonly run?: JoinHandler<Output, Return, Sets, Context> | undefined
}

/** A defined task whose jobs wait for others: joins. `Sets`: those others. */
export interface JoinTask<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  Result = unknown,
  Sets extends JoinSets = JoinSets,
  QueueName extends string = string,
  Context = unknown,
> extends TaskHeader<Name, Input, Output, Result, QueueName, Context>,
    Pick<
      Task<Name, Input, Output>,
      | 'kind'
      | 'batch'
      | 'isolation'
      | 'group'
      | 'expiresInMs'
      | 'idempotencyMs'
      | 'shouldRun'
      | 'onExhausted'
      | 'onDead'
      | 'signals'
    > {
  /** Its sets by their names. */
  readonly joins: ReadonlyMap<string, MemberSet>
  /** Carries the types; absent at run time. */
  readonly [types]?: { input: Input; output: Output; result: Result; needs: Needs<Context>; sets: Sets }
  /** The handler; undefined if only producers know this task. */
  readonly run: JoinHandler<Output, unknown, Sets, Context> | undefined
  /** Like `handle` of other tasks. */
  handle<Return extends Returnable<Result>, Needed = unknown>(
    run: JoinHandler<Output, Return, Sets, Needed>,
  ): JoinTask<Name, Input, Output, unknown extends Result ? ResultOf<Return> : Result, Sets, QueueName, Needed>
  /** Like `returns` of other tasks. */
  returns<Returned>(): JoinTask<Name, Input, Output, Returned, Sets, QueueName, Context>
}

/** Some task whose jobs wait for others. */
// biome-ignore lint/suspicious/noExplicitAny: a task's types are contravariant in its handler; only `any` accepts them all
type AnyJoinTask = JoinTask<string, any, any, any, any, string, any>
/** Some task that runs each of its jobs by itself. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type AnySingleTask = Task<string, any, any, any, string, any> | AnyJoinTask
/** Some batch task. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type AnyBatchTask = BatchTask<string, any, any, any, string, any>
/** Some task that is not ordered. */
export type AnyPlainTask = AnySingleTask | AnyBatchTask

const longestWaitMs = 60_000

/** @internal */
const batchSchema = v.pipe(
  exactly({ size: whole(1, 1_000), wait: v.optional(duration(0, longestWaitMs), 0) }),
  v.transform(({ size, wait }): Batch => ({ size, waitMs: wait })),
)

/** Whether the jobs of a task run in processes of their own, and the settings of these processes. */
interface IsolationOptions {
  /**
   * `'process'`: each job runs in a process of its own, which outlives its worker if possible. Default: jobs run in the
   * worker.
   */
  readonly isolate?: 'process' | undefined
  /**
   * The module that exports the task, as `import.meta.url`; the process loads the task from it. Needed unless `millrace
   * work` starts the worker, because that command knows its configuration.
   */
  readonly module?: string | undefined
  /**
   * Names of environment variables that the process gets, besides PATH, HOME, the locale, `NODE_*` and `MILLRACE_*`.
   * Default: none, with a warning at the first run that names what is withheld (event `env.withheld`); `[]` is none
   * without it.
   */
  readonly env?: readonly string[] | undefined
  /**
   * The largest JavaScript heap of the process, such as `'512MB'`. Millrace also kills the process if it takes more
   * than twice as much and 192 MB in all. Default: Node's own limit.
   */
  readonly maxHeap?: number | string | undefined
  /**
   * What happens to the process when its worker dies or stops. `'detach'`: it goes on. `'exit'`: it ends and its job
   * goes back. Default `'detach'` if the time limit is `'none'` or at least 10 minutes, otherwise `'exit'`.
   */
  readonly onSupervisorLoss?: 'detach' | 'exit' | undefined
}

/** The isolation options with every default filled in. */
interface Isolation {
  readonly module: string | undefined
  /** Undefined: the task does not say which variables it needs, and gets none. */
  readonly env: readonly string[] | undefined
  readonly maxHeapBytes: number | undefined
  readonly onSupervisorLoss: 'detach' | 'exit'
}

/** The smallest heap with which V8 starts. */
const leastHeapBytes = 16 * 1_048_576

/** @internal */
const isolationOptions = {
  isolate: v.optional(v.literal('process', "must be 'process'")),
  module: v.optional(
    v.pipe(
      v.string('must be a file URL: `import.meta.url`'),
      v.check((url) => URL.canParse(url) && new URL(url).protocol === 'file:', 'must be a file URL: `import.meta.url`'),
    ),
  ),
  env: v.optional(
    v.array(
      v.pipe(v.string(), v.regex(/^[A-Za-z_]\w*$/, 'must be the name of an environment variable')),
      "must be a list of names of environment variables, as in ['DATABASE_URL']",
    ),
  ),
  maxHeap: v.optional(v.pipe(byteSize(), v.minValue(leastHeapBytes, 'must be at least 16 MB'))),
  onSupervisorLoss: v.optional(v.picklist(['detach', 'exit'], "must be 'detach' or 'exit'")),
}

const optionsSchema = exactly({
  ...headerOptions,
  ...isolationOptions,
  batch: v.optional(batchSchema),
  joins: v.optional(joinsOption),
  timeLimit: v.optional(boundlessTime, '60s'),
  run: v.optional(callable<Handler<unknown, unknown>>()),
  retry: retryOptions(),
  group: v.optional(callable<(input: unknown) => string | number>()),
  expiresIn: v.optional(duration(1, furthestMs)),
  idempotency: v.optional(duration()),
  shouldRun: v.optional(callable<(input: unknown, job: RunningJob) => boolean | Promise<boolean>>()),
  onExhausted: v.optional(callable<(exhausted: ExhaustedJob<unknown>) => void | Promise<void>>()),
  onDead: v.optional(onDeadOption),
  signals: v.optional(v.array(v.custom<AnySignal>(isSignal, 'must be a signal of `defineSignal()`')), []),
})

/**
 * Defines a task. Throws `ConfigError` that lists everything wrong with the options.
 *
 * The value is both the definition and a typed client: export it, and import it in the code that enqueues jobs and in
 * the code that runs them.
 *
 * @example
 * export const indexPages = defineTask({
 *   name: 'index-pages',
 *   batch: { size: 50, wait: '1s' },
 *   async run(pages: { url: string }[]) {
 *     return pages.map(({ url }) => ({ url, isIndexed: true }))
 *   },
 * })
 */
export function defineTask<
  const Name extends string,
  Output = unknown,
  Input = Output,
  Return = unknown,
  const QueueName extends string = 'default',
  Context = unknown,
>(
  options: BatchTaskOptions<Name, Input, Output, Return, QueueName, Context>,
): BatchTask<Name, Input, Output, ResultOfEach<Return>, QueueName, Context>
/**
 * Defines a task. Throws `ConfigError` that lists everything wrong with the options.
 *
 * The value is both the definition and a typed client: export it, and import it in the code that enqueues jobs and in
 * the code that runs them.
 *
 * @example
 * export const summary = defineTask({
 *   name: 'summary',
 *   joins: { mails: many(sendEmail) },
 *   async run(input: { list: string }, ctx) {
 *     return { list: input.list, sent: ctx.joined.mails.counts.completed }
 *   },
 * })
 */
export function defineTask<
  const Name extends string,
  const Sets extends JoinSets,
  Output = unknown,
  Input = Output,
  Return = unknown,
  const QueueName extends string = 'default',
  Context = unknown,
>(
  options: JoinTaskOptions<Name, Input, Output, Return, Sets, QueueName, Context>,
): JoinTask<Name, Input, Output, ResultOf<Return>, Sets, QueueName, Context>
/**
 * Defines a task. Throws `ConfigError` that lists everything wrong with the options.
 *
 * The value is both the definition and a typed client: export it, and import it in the code that enqueues jobs and in
 * the code that runs them.
 *
 * @example
 * export const sendEmail = defineTask({
 *   name: 'send-email',
 *   retry: { max: 4 },
 *   async run(input: { to: string }, ctx) {
 *     return { sentTo: input.to, attempt: ctx.job.attempt }
 *   },
 * })
 */
export function defineTask<
  const Name extends string,
  Output = unknown,
  Input = Output,
  Return = unknown,
  const QueueName extends string = 'default',
  Context = unknown,
>(
  options: TaskOptions<Name, Input, Output, Return, QueueName, Context>,
): Task<Name, Input, Output, ResultOf<Return>, QueueName, Context>
export function defineTask(options: object): AnyPlainTask {
  const what = `task${quotedName(options)}`
  const given = checkedTask(optionsSchema, options, what)
  const mistakes = isolationMistakes(given, given.timeLimit)
  if (given.batch !== undefined && given.isolate !== undefined)
    mistakes.push({ path: 'batch', message: "cannot be together with isolate: 'process', which runs one job in each" })
  if (given.batch !== undefined && given.joins !== undefined)
    mistakes.push({
      path: 'joins',
      message: 'cannot be together with batch, whose jobs run together: leave one of them out',
    })
  if (given.batch !== undefined && given.signals.length > 0)
    mistakes.push({ path: 'signals', message: 'cannot be together with batch, whose jobs wait for no signals' })
  const twice = given.signals.find(({ name }, i) => given.signals.findIndex((one) => one.name === name) < i)
  if (twice !== undefined)
    mistakes.push({ path: 'signals', message: `has two of the name '${twice.name}': a job gets each name once` })
  refuseTask(what, given.name, mistakes)
  const { name, queue = 'default', input, run, retry, timeLimit, slowAfter, aliases } = given
  const { group, shouldRun, onExhausted, onDead, batch, joins, expiresIn, idempotency, signals } = given
  const isolation = isolationOf(given, timeLimit)
  const { max = isolation === undefined ? 4 : 0, backoff = exponential(), when } = retry
  const definition = {
    kind: 'plain',
    ...{ name, queue, input, aliases, group, shouldRun, onExhausted, onDead, isolation, batch, joins, signals },
    timeLimitMs: timeLimit,
    slowAfterMs: slowAfter,
    expiresInMs: expiresIn,
    idempotencyMs: idempotency,
    retry: { max, backoff, when },
  }
  return withHandler(definition, run) as unknown as AnyPlainTask
}

/** A job with this time limit or a longer one is worth more than a restart of its worker. */
const longMs = 600_000

type GivenIsolation = v.InferOutput<v.ObjectSchema<typeof isolationOptions, undefined>>

/**
 * The isolation of a task; undefined if its jobs run in the worker.
 * @internal
 */
function isolationOf(options: GivenIsolation, timeLimitMs: number): Isolation | undefined {
  const { isolate, module, env, maxHeap, onSupervisorLoss } = options
  if (isolate === undefined) return undefined
  return {
    module,
    env,
    maxHeapBytes: maxHeap,
    onSupervisorLoss: onSupervisorLoss ?? (timeLimitMs >= longMs ? 'detach' : 'exit'),
  }
}

/**
 * The mistakes in options that only isolated tasks may have.
 * @internal
 */
function isolationMistakes(options: GivenIsolation, timeLimit: number): ConfigIssue[] {
  if (options.isolate !== undefined) return []
  const idle = (['module', 'env', 'maxHeap', 'onSupervisorLoss'] as const).filter((name) => options[name] !== undefined)
  const issues = idle.map((path) => ({ path, message: "needs isolate: 'process'" }))
  if (timeLimit !== Number.POSITIVE_INFINITY) return issues
  const message = "must be a duration: only a process can be ended that never ends by itself. Add isolate: 'process'"
  return [{ path: 'timeLimit', message: `${message}; got 'none'` }, ...issues]
}
