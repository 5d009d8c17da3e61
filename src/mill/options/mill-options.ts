/** The options of a mill, and the check of all of them together. */

import * as v from 'valibot'
import { DraftWarnings } from '../../client/enqueue/draft-warnings.js'
import type { DraftEnvironment } from '../../client/enqueue/job-draft.js'
import { draftMistake } from '../../client/schedules/schedule-definition.js'
import { ConfigError, type ConfigIssue, UnsupportedByStoreError } from '../../core/errors.js'
import { Events } from '../../core/events.js'
import { type Logger, silentLogger } from '../../core/logger.js'
import { type FormatError, formatError } from '../../core/messages/error-text.js'
import { Packing } from '../../core/packing/packing.js'
import { Seal } from '../../core/packing/seal.js'
import { type SealOptions, sealKeysOf } from '../../core/packing/seal-options.js'
import { type QueueOptions, queueOptionsSchema } from '../../core/queue/queue.js'
import { nameClashes, Registry } from '../../core/registry.js'
import { type CheckedSchedule, type SchedulesOf, scheduleSchema } from '../../core/schedule/schedule-options.js'
import { type AnyTask, isTask } from '../../core/task/any-task.js'
import type { Middleware } from '../../core/task/middleware.js'
import { type ContextOf, taskName } from '../../core/task/task-definition.js'
import { type Codec, jsonCodec } from '../../core/values/codec.js'
import type { Duration } from '../../core/values/duration.js'
import { isQueueName, queueNameForm } from '../../core/values/ids.js'
import { byteSize, callable, duration, exactly, parsed, whole } from '../../core/values/option-check.js'
import { selectorNames } from '../../selectors/named-selectors.js'
import type { StoreTraits } from '../../stores/contract/store.js'
import { projectName } from '../base-folder.js'
import type { StoreDescriptor } from '../store-source.js'
import { declaredQueues, queueClashes, taskClashes } from './declared-queues.js'
import { readQueueFile } from './queue-file.js'
import { refuseUnsupported } from './unsupported.js'
import { type WorkerDefaults, workerDefaults } from './worker-options.js'

/**
 * The names of the queues of a mill: those that `queues` declares and those of its tasks. It is any string if `queues`
 * is the path of a file or the compiler does not know a name.
 */
export type QueueNamesOf<Declared extends string, Tasks extends readonly AnyTask[], Queues> = Queues extends string
  ? string
  : [Declared | Tasks[number]['queue']] extends [never]
    ? string
    : Declared | Tasks[number]['queue']

/** The path of a file with queues; never, if they are declared in place. */
type QueueFile<Queues> = Queues extends string ? Queues : never

export interface MillOptions<
  Declared extends string = string,
  Tasks extends readonly AnyTask[] = readonly AnyTask[],
  Queues = string,
  Scheduled extends Readonly<Record<string, AnyTask>> = Readonly<Record<string, AnyTask>>,
> {
  /**
   * The store of the jobs: `'memory:'`, `'sqlite:path/to/jobs.db'`, `'postgres://user@host/database'`,
   * `'redis://host:port'` (also `redis+sentinel:`, `redis+cluster:` and `rediss…` for TLS; or its parts, `{ hosts, … }`),
   * `'sqs://region'`, or `{ module, export }` for a function that makes a store.
   */
  readonly store: StoreDescriptor
  /**
   * The prefix of all keys in a store that others share; in Postgres the schema. It has no effect on SQLite, where the file
   * is the mill's own.
   * Default `'millrace'`.
   */
  readonly namespace?: string | undefined
  /** The number of replicas that must have a job before its enqueue is accepted (Redis). Default 0. */
  readonly replicas?: number | undefined
  /**
   * The queues by name, or the path of a YAML file with them, in Kale's form or with these options. You may omit queues
   * that only tasks name; they get the defaults, and are ordered if their task is.
   */
  readonly queues?: Readonly<Record<Declared, QueueOptions>> | QueueFile<Queues> | undefined
  /** The tasks to enqueue; those with a handler also run here. Default `[]`. */
  readonly tasks?: Tasks | undefined
  /**
   * Names of tasks that are not in `tasks` but may be enqueued all the same, because only workers elsewhere know them.
   * Default `[]`.
   */
  readonly tasksElsewhere?: readonly string[] | undefined
  /**
   * The schedules by name, each with a task, its input and its times. A worker that starts changes the store to match:
   * it adds new ones, updates changed ones, and removes those that are no longer declared here (`schedulesOf`). Default:
   * workers leave the stored schedules as they are.
   */
  readonly schedules?: SchedulesOf<Scheduled> | undefined
  /**
   * The name under which `schedules` are declared: workers remove only what was declared under the same name, so several
   * services may share a store. 1 to 256 characters. Default: the name in the `package.json` of the project that holds
   * the configuration or the main script, otherwise `'default'`.
   */
  readonly schedulesOf?: string | undefined
  /** The codec that stores values. Default: JSON, with support for Date, Map, Set, BigInt and bytes. */
  readonly codec?: Codec
  /** Stores larger values as gzip, unless that saves nothing: `{ above: '1kB' }`. Default: no compression. */
  readonly compress?: { readonly above: number | string } | undefined
  /**
   * Encrypts inputs, metas, results and checkpoints before they are stored (AES-256-GCM), and refuses values that were
   * changed: `{ current: '2026-11', keys: { '2026-11': … } }`. Default: no encryption.
   */
  readonly seal?: SealOptions
  /**
   * The function that makes the stored text of an error, at most 4,096 bytes. Default: its stack, which begins with its
   * message, and its causes.
   */
  readonly formatError?: FormatError | undefined
  /** The most bytes of one input, meta or result in its stored form, 1 … 1,048,576. Default 256,000. */
  readonly maxPayloadBytes?: number | undefined
  /** How long an id of your own is remembered after its job ended. Default `'5m'`. */
  readonly idempotency?: Duration | undefined
  /**
   * Opens what handlers need besides their input, such as a database: they find it as `ctx.context`. Called once in each
   * process that calls handlers, before its first claim; a producer never calls it. If it fails it is called again for
   * half a minute, and then the worker does not start: no job is taken meanwhile. After the last job its
   * `Symbol.asyncDispose` or `Symbol.dispose` is called, if it has one. Default: none.
   *
   * @example
   * const mill = millrace({
   *   store: 'sqlite:jobs.db',
   *   tasks: [bill],
   *   async context() {
   *     const mailer = await Mailer.connect()
   *     return { mailer, [Symbol.asyncDispose]: () => mailer.close() }
   *   },
   * })
   */
  readonly context?: (() => unknown) | undefined
  /** Functions around enqueues and handler calls; the first is the outermost. Default `[]`. */
  readonly middleware?: readonly Middleware[]
  /**
   * Counts the enqueues, starts and ends of jobs, and sums them up in the store by minute and hour, for
   * `mill.queue(q).history()`, `stats --watch` and charts. Default true.
   */
  readonly history?: boolean | undefined
  /** The logger for events that users should know. Default: none. */
  readonly logger?: Logger | undefined
  /**
   * Defaults for the workers of this mill, also those of `millrace work`; `mill.worker()` or a flag overrides them.
   * Default: the default of each worker option.
   */
  readonly worker?: WorkerDefaults<NoInfer<QueueNamesOf<Declared, Tasks, Queues>>> | undefined
  /** Called once in every process that runs workers, before its first claim. If it rejects, no worker starts. */
  readonly onWorkerStart?: (() => void | Promise<void>) | undefined
  /** Called when the last worker of the process has ended. An error that it throws is reported as `hook.failed`. */
  readonly onWorkerStop?: (() => void | Promise<void>) | undefined
  /** Called once, with the error that ended a worker of this process. `onWorkerStop` follows, unless another worker runs. */
  readonly onFatal?: ((error: unknown) => void | Promise<void>) | undefined
}

/** The option `context`, if the handlers of these tasks need anything: it must give that. */
export type ContextOption<Tasks extends readonly AnyTask[]> =
  unknown extends ContextOf<Tasks[number]>
    ? unknown
    : { readonly context: () => ContextOf<Tasks[number]> | Promise<ContextOf<Tasks[number]>> }

/**
 * Hooks around the life of workers.
 * @internal
 */
export interface WorkerHooks {
  readonly onWorkerStart: (() => void | Promise<void>) | undefined
  readonly onWorkerStop: (() => void | Promise<void>) | undefined
  readonly onFatal: ((error: unknown) => void | Promise<void>) | undefined
}

/** @internal */
export interface CheckedOptions {
  readonly namespace: string
  readonly replicas: number
  readonly registry: Registry
  readonly tasksElsewhere: readonly string[]
  /** Undefined if the options have no `schedules`. */
  readonly schedules: ReadonlyMap<string, CheckedSchedule> | undefined
  readonly schedulesOf: string
  readonly packing: Packing
  readonly formatError: FormatError
  readonly maxPayloadBytes: number
  readonly idempotencyMs: number
  readonly context: (() => unknown) | undefined
  readonly middleware: readonly Middleware[]
  readonly history: boolean
  readonly logger: Logger
  readonly worker: WorkerDefaults
  readonly hooks: WorkerHooks
}

/** Whether `value` has these methods, its own or inherited: users may pass instances of classes. */
function hasMethods(value: unknown, names: readonly string[]): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
  )
}

function isCodec(value: unknown): boolean {
  // The name becomes part of keys and bodies, and comes before `+gzip` and `+sealed`.
  return hasMethods(value, ['encode', 'decode']) && isQueueName((value as Codec).name)
}

function isMiddleware(value: unknown): boolean {
  return ['enqueue', 'run', 'settle'].some((name) => hasMethods(value, [name]))
}

function isLogger(value: unknown): boolean {
  return hasMethods(value, ['debug', 'info', 'warn', 'error'])
}

const queueName = v.custom<string>(isQueueName, `must be ${queueNameForm}`)

/**
 * The shape of the options. An undefined option counts as left out. Only a codec, a seal and middleware are refused if they
 * are undefined, as the throttle of a queue is: they are usually imported, and jobs would be stored in clear, in another form, or run
 * without them.
 */
const shape = exactly({
  store: v.union([v.string(), v.looseObject({})], "must be a store such as 'sqlite:.millrace/jobs.db' or 'memory:'"),
  namespace: v.optional(
    v.custom<string>((given) => given === '' || isQueueName(given), `must be ${queueNameForm}, or '' in SQS`),
    'millrace',
  ),
  replicas: v.optional(whole(0, 100), 0),
  queues: v.optional(v.record(queueName, queueOptionsSchema), {}),
  tasks: v.optional(
    v.array(v.custom<AnyTask>(isTask, 'must be a task made by defineTask() or defineOrderedTask()')),
    [],
  ),
  tasksElsewhere: v.optional(v.array(taskName), []),
  schedules: v.optional(v.record(queueName, scheduleSchema)),
  schedulesOf: v.optional(
    v.pipe(
      v.string(),
      v.check((name) => name.length > 0 && name.length <= 256, 'must be a name of 1 to 256 characters'),
    ),
  ),
  codec: v.exactOptional(
    v.custom<Codec>(isCodec, `must be { name, encode, decode }, the name ${queueNameForm}`),
    () => jsonCodec,
  ),
  compress: v.optional(exactly({ above: byteSize() })),
  // Checked apart: the message must not show the value.
  seal: v.exactOptional(v.unknown()),
  formatError: v.optional(callable<FormatError>(), () => formatError),
  maxPayloadBytes: v.optional(whole(1, 1_048_576), 256_000),
  idempotency: v.optional(duration(0), '5m'),
  context: v.optional(callable<() => unknown>()),
  middleware: v.exactOptional(
    v.array(v.custom<Middleware>(isMiddleware, 'must be an object with enqueue, run or settle')),
    [],
  ),
  history: v.optional(v.boolean(), true),
  logger: v.optional(v.custom<Logger>(isLogger, 'must have debug, info, warn and error'), () => silentLogger),
  worker: v.optional(workerDefaults, {}),
  onWorkerStart: v.optional(callable<() => void | Promise<void>>()),
  onWorkerStop: v.optional(callable<() => void | Promise<void>>()),
  onFatal: v.optional(callable<(error: unknown) => void | Promise<void>>()),
})

/** @internal */
export const millOptionNames: ReadonlySet<string> = new Set(Object.keys(shape.entries))

/**
 * The checked options. Throws `ConfigError` with every mistake, or `UnsupportedByStoreError` for the first feature that
 * the store lacks.
 * @internal
 */
export function checkOptions(options: MillOptions, traits: StoreTraits | undefined): CheckedOptions {
  const asked = withQueueFile(options)
  const given = parsed(shape, asked, 'the configuration')
  const dropped = [...droppedNames(asked, given, 'queues'), ...droppedNames(asked, given, 'schedules')]
  if (dropped.length > 0) throw new ConfigError('the configuration', dropped)
  const queues = new Map(Object.entries(given.queues))
  const clashes = [...nameClashes(given.tasks), ...queueClashes(queues, given.tasks)]
  if (clashes.length > 0) throw new ConfigError('the configuration', clashes)
  const registry = new Registry(given.tasks, declaredQueues(queues, given.tasks))
  const schedules = given.schedules && new Map(Object.entries(given.schedules))
  const issues = [
    ...taskClashes(registry),
    ...deathIssues(registry, given.tasksElsewhere),
    ...scheduleIssues(schedules, registry, given.tasksElsewhere),
    ...workerIssues(given.worker, registry),
  ]
  const sealKeys = 'seal' in given ? sealKeysOf(given.seal, issues) : undefined
  if (issues.length > 0) throw new ConfigError('the configuration', issues)
  const packing = new Packing(given.codec, given.compress?.above, sealKeys && new Seal(sealKeys, given.namespace))
  if (traits !== undefined) refuseUnsupported(registry, traits, schedules)
  if (traits !== undefined && given.replicas > 0 && !traits.replicated)
    throw new UnsupportedByStoreError(
      traits.name,
      'waiting for replicas',
      'Leave `replicas` out, or use Redis with replicas.',
    )
  if (traits !== undefined && schedules !== undefined) {
    const { tasksElsewhere, maxPayloadBytes, idempotency } = given
    const rules = { registry, tasksElsewhere, packing, traits, maxPayloadBytes, idempotencyMs: idempotency }
    refuseScheduledJobs(schedules, rules)
  }
  return {
    namespace: given.namespace,
    replicas: given.replicas,
    registry,
    tasksElsewhere: given.tasksElsewhere,
    schedules,
    schedulesOf: given.schedulesOf ?? (schedules && projectName()) ?? 'default',
    packing,
    formatError: given.formatError,
    maxPayloadBytes: given.maxPayloadBytes,
    idempotencyMs: given.idempotency,
    context: given.context,
    middleware: given.middleware,
    history: given.history,
    logger: given.logger,
    worker: (options.worker ?? {}) as WorkerDefaults,
    hooks: { onWorkerStart: given.onWorkerStart, onWorkerStop: given.onWorkerStop, onFatal: given.onFatal },
  }
}

function withQueueFile(options: MillOptions): MillOptions {
  // A value that is not an object is refused below, with the expected form.
  return typeof options?.queues === 'string' ? { ...options, queues: readQueueFile(options.queues) } : options
}

/** Mistakes for entries that the check of a record drops, because every JavaScript object has a property of that name. */
function droppedNames(
  asked: MillOptions,
  given: Record<string, unknown>,
  option: 'queues' | 'schedules',
): ConfigIssue[] {
  const kept = given[option] ?? {}
  return Object.keys(asked[option] ?? {})
    .filter((name) => !Object.hasOwn(kept, name))
    .map((name) => ({
      path: `${option}.${name}`,
      message: 'must have another name: every object of JavaScript has a property of this one',
    }))
}

/**
 * Mistakes in `onDead`: the tasks that it names must be known, and so must their queues, which must take them. Deaths must
 * not come back to their own task.
 */
function deathIssues(registry: Registry, tasksElsewhere: readonly string[]): ConfigIssue[] {
  const tasks = [...registry.tasks.values()]
  const wrong = tasks.flatMap(({ name, onDead }): ConfigIssue[] => {
    if (onDead === undefined) return []
    const which = `which is onDead of the task '${name}'`
    if (registry.find(onDead.name) === undefined && !tasksElsewhere.includes(onDead.name))
      return [
        {
          path: 'tasks',
          message: `lack '${onDead.name}', ${which}: add it, or its name to \`tasksElsewhere\` if only other workers run it`,
        },
      ]
    const queue = registry.queues.get(onDead.queue)
    if (queue === undefined)
      return [
        { path: 'queues', message: `lack '${onDead.queue}', the queue of '${onDead.name}', ${which}: declare it` },
      ]
    if (!queue.ordered) return []
    const message = `have '${onDead.name}', ${which}, in queue '${queue.name}', which is ordered: give it another queue`
    return [{ path: 'tasks', message }]
  })
  return [...wrong, ...deathRings(registry).map(ringIssue)]
}

/** The names of tasks of which each gets the deaths of the one before, and the first those of the last. */
function deathRings(registry: Registry): string[][] {
  const walked = new Set<AnyTask>()
  return [...registry.tasks.values()].flatMap((first) => {
    const way: AnyTask[] = []
    let task: AnyTask | undefined = first
    while (task?.onDead !== undefined && !walked.has(task)) {
      walked.add(task)
      way.push(task)
      task = registry.find(task.onDead.name)
    }
    const start = task === undefined ? -1 : way.indexOf(task)
    return start < 0 ? [] : [way.slice(start).map(({ name }) => name)]
  })
}

function ringIssue(names: readonly string[]): ConfigIssue {
  const way = [...names, names[0]].map((name) => `'${name}'`).join(' → ')
  const message = `must not get the deaths of their own jobs, by onDead: ${way}. A job that always dies would bring about others for ever: leave one \`onDead\` out`
  return { path: 'tasks', message }
}

/** Mistakes in the schedules: their tasks must be known. */
function scheduleIssues(
  schedules: ReadonlyMap<string, CheckedSchedule> | undefined,
  registry: Registry,
  tasksElsewhere: readonly string[],
): ConfigIssue[] {
  return [...(schedules ?? [])].flatMap(([name, { task }]) =>
    registry.find(task.name) !== undefined || tasksElsewhere.includes(task.name)
      ? []
      : [
          {
            path: `schedules.${name}.task`,
            message: `is the task '${task.name}', which is not under \`tasks\`: add it there, or its name to \`tasksElsewhere\` if only other workers run it`,
          },
        ],
  )
}

/**
 * Throws `ConfigError` for schedules whose jobs could not be enqueued, with every mistake. What only an asynchronous
 * schema knows is refused when a worker starts.
 */
function refuseScheduledJobs(
  schedules: ReadonlyMap<string, CheckedSchedule>,
  rules: Omit<DraftEnvironment, 'warnings' | 'newId'>,
): void {
  // Warnings are for those who write them to the store.
  const checking = { ...rules, warnings: new DraftWarnings(new Events()), newId: () => 'checked' }
  const issues = [...schedules].flatMap(([name, schedule]): ConfigIssue[] => {
    const message = draftMistake(name, schedule, checking)
    return message === undefined ? [] : [{ path: `schedules.${name}`, message }]
  })
  if (issues.length > 0) throw new ConfigError('the configuration', issues)
}

/** Mistakes in the worker options: they may name only declared queues. */
function workerIssues(
  { queues, selector }: { queues?: string[] | undefined; selector?: unknown },
  registry: Registry,
): ConfigIssue[] {
  const known = [...registry.queues.keys()]
  const strange = (queues ?? []).filter((name) => !registry.queues.has(name))
  const named = typeof selector !== 'string' || (selectorNames as readonly string[]).includes(selector)
  return [
    ...strange.map((name) => ({
      path: 'worker.queues',
      message: `names queue '${name}', which is not declared; there are ${known.join(', ')}`,
    })),
    ...(named
      ? []
      : [{ path: 'worker.selector', message: `must be one of ${selectorNames.join(', ')}, or a function` }]),
  ]
}
