/**
 * The errors that Millrace throws, each with a stable `code`.
 *
 * A released code never changes and never gets another meaning; messages may change. A message says what is wrong,
 * where, which form is expected and what to do about it.
 */

/**
 * Every error that Millrace throws.
 *
 * @example
 * if (isMillraceError(error)) console.error(`${error.code}: see node_modules/${error.page}`)
 */
export class MillraceError extends Error {
  /** Stable, machine-readable name of this kind of error. */
  readonly code: string
  /** The page that explains the code, as a path below `node_modules`. Node prints it with an uncaught error. */
  readonly page: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.page = `millrace/docs/troubleshooting/${code}.md`
  }

  override get name(): string {
    return this.constructor.name
  }
}

/**
 * The mark that every Millrace error has. A store's module may bring another copy of this package, whose errors have
 * the same mark.
 */
const mark = Symbol.for('millrace.error')
Object.defineProperty(MillraceError.prototype, mark, { value: true })

/**
 * Checks whether this is an error of Millrace, from this or another copy of the package.
 *
 * @example
 * if (isMillraceError(error)) console.error(error.code, error.message)
 */
export function isMillraceError(error: unknown): error is MillraceError {
  return typeof error === 'object' && error !== null && mark in error
}

/** The errors of Millrace by their codes. Each type names the fields that the error has besides its message. */
export interface ErrorsByCode {
  readonly 'argument-invalid': InvalidArgumentError
  readonly closed: ClosedError
  readonly 'codec-failed': CodecError
  readonly 'config-conflict': ConfigConflictError
  readonly 'config-invalid': ConfigError
  readonly 'context-failed': ContextError
  readonly 'enqueue-many-refused': EnqueueManyError
  readonly 'job-cancelled': JobCancelledError
  readonly 'job-dead': JobDeadError
  readonly 'job-elsewhere': JobElsewhereError
  readonly 'job-invalid': InvalidJobError
  readonly 'job-running': JobRunningError
  readonly 'lease-lost': LeaseLostError
  readonly 'package-bundled': PackageBundledError
  readonly 'payload-too-large': PayloadTooLargeError
  readonly 'process-died': ProcessDiedError
  readonly 'queue-draining': QueueDrainingError
  readonly 'queue-full': QueueFullError
  readonly 'queue-missing': QueueMissingError
  readonly 'queue-unknown': UnknownQueueError
  readonly 'result-not-kept': ResultNotKeptError
  readonly 'result-timeout': ResultTimeoutError
  readonly 'step-duplicate-name': StepNameError
  readonly 'store-corrupt': StoreCorruptError
  readonly 'store-full': StoreFullError
  readonly 'store-newer': StoreVersionError
  readonly 'store-refused': StoreRefusedError
  readonly 'store-unavailable': StoreUnavailableError
  readonly 'task-unknown': UnknownTaskError
  readonly 'throttle-conflict': ThrottleConflictError
  readonly 'time-limit-exceeded': TimeLimitError
  readonly unrecoverable: UnrecoverableError
  readonly 'unsupported-by-store': UnsupportedByStoreError
  readonly 'worker-stopped': WorkerStoppedError
}

/**
 * Checks whether an error is the Millrace error with this code; its own fields are then typed. The check compares
 * codes, not classes, because the error may come from another copy of the package.
 *
 * @example
 * if (hasCode(error, 'enqueue-many-refused')) console.error(error.results)
 */
export function hasCode<Code extends keyof ErrorsByCode>(error: unknown, code: Code): error is ErrorsByCode[Code] {
  return typeof error === 'object' && error !== null && (error as { code?: unknown }).code === code
}

/** One mistake in a definition or a configuration: its path, and the form that is expected there. */
export interface ConfigIssue {
  readonly path: string
  readonly message: string
}

/** A definition or configuration is wrong; `issues` lists every mistake at once. Nothing was started. */
export class ConfigError extends MillraceError {
  /** The thing that is not valid, in the words that begin the message. */
  readonly what: string
  readonly issues: readonly ConfigIssue[]

  constructor(what: string, issues: readonly ConfigIssue[], options?: ErrorOptions) {
    const lines = issues.map((issue) => `  ${issue.path}: ${issue.message}`)
    // Options of a call, and several files.
    const verb = /^the options | and \S+\.\w+$/.test(what) ? 'are' : 'is'
    super('config-invalid', `${what} ${verb} not valid:\n${lines.join('\n')}`, options)
    this.what = what
    this.issues = issues
  }
}

/**
 * The `context` of a mill could not be opened, so its worker did not start and took no job. `cause` is the error of the
 * last try.
 */
export class ContextError extends MillraceError {
  /** `triedFor`: as users write a duration. */
  constructor(triedFor: string, why: string, options: ErrorOptions) {
    super(
      'context-failed',
      `\`context\` of the mill could not open what the handlers need, tried for ${triedFor}: ${why.replace(/\.$/, '')}. The worker has taken no job; start it again once that is mended.`,
      options,
    )
  }
}

/** A queue exists with a property that is fixed at first use, and the value asked for is different. */
export class ConfigConflictError extends MillraceError {
  constructor(queue: string, property: string, stored: unknown, asked: unknown, remedy: string) {
    super(
      'config-conflict',
      `queue '${queue}' is stored with ${property} ${JSON.stringify(stored)} and cannot be opened with ${JSON.stringify(asked)}. ${remedy}`,
    )
  }
}

/** The store has other rules for a throttle than the declared ones. Nothing was opened. */
export class ThrottleConflictError extends MillraceError {
  constructor(queue: string, stored: string, asked: string) {
    super(
      'throttle-conflict',
      `the throttle of queue '${queue}' is stored as ${stored} and cannot be opened as ${asked}: processes with different numbers would keep neither. Give all the same, or change the stored one by \`millrace queues throttle ${queue} --set …\`.`,
    )
  }
}

/** A job cannot be accepted as given (its input, id, priority, time or options); nothing was stored. */
export class InvalidJobError extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('job-invalid', message, options)
  }
}

/** A payload, result or other value is larger than the store or `maxPayloadBytes` allows; nothing was stored. */
export class PayloadTooLargeError extends MillraceError {
  constructor(what: string, bytes: number, limit: number) {
    super(
      'payload-too-large',
      `${what} takes ${bytes} bytes, the limit is ${limit}. Store the large part elsewhere and enqueue a reference to it, or raise maxPayloadBytes (at most 1 MiB).`,
    )
  }
}

/** A value cannot be encoded or bytes cannot be decoded by the codec. */
export class CodecError extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('codec-failed', message, options)
  }
}

/** An argument of an administrative call is wrong (a cursor, a selection, a limit). Nothing was changed. */
export class InvalidArgumentError extends MillraceError {
  constructor(message: string) {
    super('argument-invalid', message)
  }
}

/** The store cannot do what was asked; the message names the remedy. */
export class UnsupportedByStoreError extends MillraceError {
  constructor(store: string, feature: string, remedy: string) {
    super('unsupported-by-store', `the ${store} store cannot do this: ${feature}. ${remedy}`)
  }
}

/** The queue is not declared, or the store has nothing of it yet. */
export class UnknownQueueError extends MillraceError {
  /** `isDeclared`: the caller declares the queue, but the store has nothing of it yet. */
  constructor(queue: string, known: readonly string[], isDeclared = false, options?: ErrorOptions) {
    super(
      'queue-unknown',
      isDeclared
        ? `queue '${queue}' is declared, and the store has nothing of it yet. It is made when a job is first enqueued into it, or a worker first serves it.`
        : `queue '${queue}' is not declared. Declare it under 'queues' in your configuration; declared are: ${known.join(', ') || 'none'}.`,
      options,
    )
  }
}

/** The task is not declared. */
export class UnknownTaskError extends MillraceError {
  constructor(task: string, known: readonly string[]) {
    super(
      'task-unknown',
      `task '${task}' is not declared. Add it to 'tasks' in your configuration, or its name to 'tasksElsewhere' if only other workers know it; declared are: ${known.join(', ') || 'none'}.`,
    )
  }
}

/** The queue holds `maxPending` waiting jobs; nothing was stored. */
export class QueueFullError extends MillraceError {
  constructor(queue: string) {
    super(
      'queue-full',
      `queue '${queue}' is full: it holds as many waiting jobs as its maxPending allows. Try again when workers have caught up, or raise maxPending.`,
    )
  }
}

/** The queue is being drained and refuses new jobs; nothing was stored. */
export class QueueDrainingError extends MillraceError {
  constructor(queue: string) {
    super('queue-draining', `queue '${queue}' is draining and refuses new jobs until it is resumed.`)
  }
}

/** Some jobs of an `enqueueMany` were refused. `results` gives the outcome of each job, in the order given. */
export class EnqueueManyError extends MillraceError {
  readonly results: readonly unknown[]

  constructor(message: string, results: readonly unknown[], options?: ErrorOptions) {
    super('enqueue-many-refused', message, options)
    this.results = results
  }
}

/**
 * There is no result to give: the job ended before the call and nothing is kept of it, it never existed, or it completed
 * with a result that could not be kept.
 */
export class ResultNotKeptError extends MillraceError {
  /** Why the result of a completed job could not be kept; undefined if nothing is known of the job. */
  readonly why: string | undefined

  constructor(queue: string, id: string, why?: string) {
    super(
      'result-not-kept',
      why === undefined
        ? `nothing is kept of job '${id}' in queue '${queue}': it has ended and its result was not kept (or has expired), or it never existed. Wait for the result from the enqueue on; or give the job an id of your own, or set the queue's retention.results: then its end is remembered.`
        : `job '${id}' in queue '${queue}' has completed, and its result could not be kept: ${why.replace(/\.$/, '')}. Return a value that the codec can store within maxPayloadBytes, or a reference to it.`,
    )
    this.why = why
  }
}

/** The kept text of an error up to its stack. */
function withoutStack(error: string): string {
  return error.split(/\n\s+at /)[0]!
}

/** `result()` waited for its `timeout` and the job had not ended. */
export class ResultTimeoutError extends MillraceError {
  /**
   * `timeout`: as users write it. `isServed`: whether a live worker serves the queue; undefined if the store does not
   * know. `lastError`: the kept text of the last error of the job, with its stack, which the message leaves out.
   */
  constructor(queue: string, id: string, timeout: string, isServed?: boolean, lastError = '') {
    const next = isServed === false ? `No worker serves '${queue}' now: start one.` : 'It goes on.'
    const last = lastError === '' ? '' : ` Its last error: ${withoutStack(lastError)}`
    super('result-timeout', `job '${id}' in queue '${queue}' had not ended after ${timeout}. ${next}${last}`)
  }
}

/** The job whose result was awaited is dead: it is in the morgue. */
export class JobDeadError extends MillraceError {
  /** The reason for burying the job: `max-retries`, `unrecoverable`, … */
  readonly reason: string | undefined
  /** The kept text of the error, with its stack; the message leaves the stack out. */
  readonly error: string | undefined

  constructor(queue: string, id: string, reason: string | undefined, error: string | undefined) {
    const first = error === undefined || error === '' ? '' : `: ${withoutStack(error)}`
    super('job-dead', `job '${id}' in queue '${queue}' is dead (${reason ?? 'no reason given'})${first}`)
    this.reason = reason
    this.error = error
  }
}

/** The job whose result was awaited was cancelled. */
export class JobCancelledError extends MillraceError {
  /** The reason given for the cancel; undefined if none was given or it is not known. */
  readonly reason: string | undefined

  constructor(queue: string, id: string, reason?: string) {
    super('job-cancelled', `job '${id}' in queue '${queue}' was cancelled${reason === undefined ? '' : `: ${reason}`}.`)
    this.reason = reason
  }
}

/** Some jobs to be deleted are running and were left alone; `deleted` others are gone. */
export class JobRunningError extends MillraceError {
  readonly ids: readonly string[]
  readonly deleted: number

  constructor(queue: string, ids: readonly string[], deleted: number) {
    const named = ids.slice(0, mostNamed).map((id) => `'${id}'`)
    const [jobs, them] = ids.length === 1 ? [`job ${named[0]} runs`, 'it'] : [`${ids.length} jobs run`, 'them']
    const which = ids.length === 1 ? '' : ` (${named.join(', ')}${ids.length > mostNamed ? ', …' : ''})`
    super(
      'job-running',
      `${jobs} in queue '${queue}' and cannot be deleted${which}: cancel ${them}, or wait for the end. Others deleted: ${deleted}.`,
    )
    this.ids = ids
    this.deleted = deleted
  }
}

/** Some jobs to be deleted are in other queues; nothing was deleted. */
export class JobElsewhereError extends MillraceError {
  /** The queue of each of these jobs. */
  readonly jobs: readonly { readonly id: string; readonly queue: string }[]

  constructor(queue: string, jobs: readonly { readonly id: string; readonly queue: string }[]) {
    const named = jobs.slice(0, mostNamed).map((job) => `'${job.id}' in queue '${job.queue}'`)
    const which = `${named.join(', ')}${jobs.length > mostNamed ? ', …' : ''}`
    super(
      'job-elsewhere',
      `queue '${queue}' has no such ${jobs.length === 1 ? 'job' : 'jobs'}, but other queues have: ${which}. Delete from the queue that has it. Nothing was deleted.`,
    )
    this.jobs = jobs
  }
}

/** The most ids that a message names. */
const mostNamed = 10

/** A handler gave one name to two steps of a run. The name is what tells a step from the others. */
export class StepNameError extends MillraceError {
  constructor(name: string, call: string) {
    super(
      'step-duplicate-name',
      `'${name}' was given to ${call}() twice in one run. The name tells a step from the others: in a loop write ctx.step(\`page-\${n}\`, …).`,
    )
  }
}

/**
 * Throw it from a handler to bury the job at once, whatever its retry policy says.
 *
 * @example
 * throw new UnrecoverableError('no customer has this number')
 */
export class UnrecoverableError extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('unrecoverable', message, options)
  }
}

/** The attempt ran longer than the task's `timeLimit`. It is then the reason of `ctx.signal`. */
export class TimeLimitError extends MillraceError {
  /** `timeLimit`: as users write it, `'1m30s'`. */
  constructor(task: string, timeLimit: string) {
    super('time-limit-exceeded', `task '${task}' ran longer than its time limit of ${timeLimit}.`)
  }
}

/**
 * The process of an isolated job ended before it settled the job, the command of `millrace exec` did not exit with 0, or
 * the worker of a job that was buried as `crashed` is gone.
 */
export class ProcessDiedError extends MillraceError {
  /** `exit`: the process ended by itself. `unknown`: nobody saw how it ended. */
  readonly by: 'exit' | 'signal' | 'oom' | 'unknown'

  /** `what`: the process, in words. `code` and `signal` are null if it is not known how the process ended. */
  constructor(
    what: string,
    end: {
      readonly code: number | null
      readonly signal: string | null
      readonly isOutOfMemory?: boolean
      /** The last text that it printed; absent if that is not known. */
      readonly tail?: string
    },
  ) {
    const { code, signal, isOutOfMemory = false, tail } = end
    const by = isOutOfMemory ? 'oom' : signal !== null ? 'signal' : code !== null ? 'exit' : 'unknown'
    const how = {
      oom: 'ran out of memory (oom): give the task more by `maxHeap`, or the machine',
      signal: `was killed by ${signal}${signal === 'SIGKILL' ? ': by somebody, or by the kernel if memory was short (`dmesg` says so)' : ''}`,
      exit: `exited with code ${code}`,
      unknown: 'is gone, and how it ended is not known',
    }[by]
    const printed = tail === '' ? ' It printed nothing.' : ` The last that it printed:\n${tail}`
    super('process-died', `${what} ${how}.${tail === undefined ? '' : printed}`)
    this.by = by
  }
}

/** The lease of the claim is lost: another worker may run the job by now. It is then the reason of `ctx.signal`. */
export class LeaseLostError extends MillraceError {
  constructor(queue: string, id: string) {
    super(
      'lease-lost',
      `the lease on job '${id}' in queue '${queue}' is lost: once another worker has the job, reports of this attempt are refused.`,
    )
  }
}

/** The worker is stopping and its grace is over. It is then the reason of `ctx.signal`. */
export class WorkerStoppedError extends MillraceError {
  constructor(message: string) {
    super('worker-stopped', message)
  }
}

/** The store file or server cannot be reached or written to now. */
export class StoreUnavailableError extends MillraceError {
  /** Whether the requested change may have happened all the same; false: it did not. Default true. */
  readonly inDoubt: boolean

  constructor(message: string, { inDoubt = true, ...options }: ErrorOptions & { readonly inDoubt?: boolean } = {}) {
    super('store-unavailable', message, options)
    this.inDoubt = inDoubt
  }
}

/** The store denies access: a password is wrong or a right is missing; the message says which. Nothing was changed. */
export class StoreRefusedError extends MillraceError {
  constructor(message: string) {
    super('store-refused', message)
  }
}

/**
 * The service has no such queue, and Millrace does not create queues there unless you ask for it; the message says how.
 * Nothing was changed.
 */
export class QueueMissingError extends MillraceError {
  constructor(message: string) {
    super('queue-missing', message)
  }
}

/** The store has no room left; the requested change did not happen. */
export class StoreFullError extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('store-full', message, options)
  }
}

/** The store's data is damaged or is not Millrace's; nothing was written to it. */
export class StoreCorruptError extends MillraceError {
  constructor(message: string, options?: ErrorOptions) {
    super('store-corrupt', message, options)
  }
}

/** The store was written by a newer version of Millrace; nothing was written to it. */
export class StoreVersionError extends MillraceError {
  constructor(message: string) {
    super('store-newer', message)
  }
}

/** The mill, its store or its worker was closed or stopped before or during the call. */
export class ClosedError extends MillraceError {
  constructor(what: string) {
    super('closed', `${what} is closed.`)
  }
}

/**
 * A file that starts a thread or process of the package is missing next to the package's code, because the package was
 * bundled. Nothing was sent to the store.
 */
export class PackageBundledError extends MillraceError {
  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(
      'package-bundled',
      `millrace was bundled: its file '${file}', which runs in a thread or process of its own, ${problem}. Nothing was sent. Leave the package out of the bundle: external: ['millrace'], with esbuild also --packages=external, with Next.js serverExternalPackages: ['millrace'].`,
      options,
    )
  }
}
