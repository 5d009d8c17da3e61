/**
 * A worker process: one worker of `millrace work`, from its start to its end by a signal, an error or the loss of its
 * supervisor.
 */

import { Socket } from 'node:net'
import { messageOf } from '../../core/messages/describe.js'
import { errorText, formatError } from '../../core/messages/error-text.js'
import { defined } from '../../core/values/defined.js'
import { formatDuration } from '../../core/values/duration.js'
import { leaveLoading } from '../../mill/configuration/user-modules.js'
import type { Loaded } from '../../mill/load-mill.js'
import type { Mill } from '../../mill/mill.js'
import { LineChannel } from '../../runtime/line-channel.js'
import { processSeenDeaths } from '../../runtime/process/seen-deaths.js'
import { processSoloGate } from '../../runtime/solo-gate.js'
import type { SelectorName } from '../../selectors/named-selectors.js'
import type { Worker } from '../../workers/worker.js'
import type { WorkerStatus } from '../../workers/worker-status.js'
import { loaded, type MillFlags } from '../mill-command.js'
import { printable, printableLines } from '../printable.js'
import { exitCodes, OperationError, UsageError } from '../process/exit-code.js'
import { endProcess, outliveReaders } from '../process/process-output.js'
import { type StopCause, stopRequest } from '../process/stop-request.js'
import { counted } from '../terminal/figures.js'
import { Terminal } from '../terminal/terminal.js'
import type { ProcessReporter } from './process-reporter.js'
import { dumpWorker, onDumpRequest } from './state-dump.js'
import { digestOf, isSupervisorMessage, linkFd, type ProcessMessage, type StatusDigest } from './supervisor-messages.js'
import { WorkLog } from './work-log.js'

export interface WorkFlags extends MillFlags {
  readonly queues?: string[]
  readonly concurrency?: number
  readonly processes: number
  readonly selector?: SelectorName
  /** Its number among the members, from 0. It decides which shards of ordered queues it asks first. */
  readonly node?: { readonly member: number; readonly members: number }
  /** In ms; infinite for `none`. */
  readonly grace: number
  /** In ms. */
  readonly maxBlock: number
  readonly affinity?: string
  readonly maxJobs?: number
  /** In bytes. */
  readonly maxRss?: number
  readonly createQueues?: boolean
  readonly healthPort?: number
  readonly healthHost: string
  /** Whether the health port serves metrics. */
  readonly metrics?: boolean
  /** It is the first process of its supervisor, which prints the lines that all would print. */
  readonly first?: boolean
  /** Its supervisor has a channel to it. */
  readonly linked?: boolean
}

/** The time after the last handler: for the last settles, the hooks, the closing of the store. */
const closeMs = 1_000
const longestTimerMs = 2 ** 31 - 1
const mostNamed = 5
const stderr = 2

export class WorkProcess {
  readonly #flags: WorkFlags
  readonly #terminal: Terminal
  readonly #stop: Promise<StopCause>
  readonly #link: SupervisorLink
  #worker: Worker | undefined
  #failed = false
  #bound: NodeJS.Timeout | undefined

  /** Listens for signals and uncaught errors from now on: both may come while the configuration is being loaded. */
  constructor(flags: WorkFlags) {
    this.#flags = flags
    outliveReaders()
    this.#terminal = new Terminal({ json: flags.json ?? false })
    const dump = () => dumpWorker(this.#terminal, this.#worker?.status())
    this.#link = new SupervisorLink(flags.linked === true, dump)
    // The supervisor passes its signal on, and a service manager may also send it to every process: together they are
    // one request.
    this.#stop = stopRequest(undefined, () => this.#link.isUp, this.#link.lost)
    processSoloGate.onAlone = (isAlone) => this.#link.alone(isAlone)
    onDumpRequest(dump)
    process.on('uncaughtException', (error) => this.#uncaught(error))
  }

  /**
   * Resolves when the worker has ended, with the exit code set. Throws the error that kept it from starting, or that
   * ended it.
   */
  async run(module: string | undefined): Promise<void> {
    let log: WorkLog | undefined
    void this.#stop.then((cause) => this.#stopFor(cause, log))
    const load = await loaded(this.#flags, module)
    const { mill } = load
    refuseIdle(load, this.#flags.first === true)
    const worker = this.#workerOf(load)
    this.#worker = worker
    log = new WorkLog(mill, this.#terminal)
    mill.on('worker.recycling', () => this.#link.recycling())
    mill.on('worker.failed', () => this.#link.failing())
    mill.on('worker.signalled', ({ signal }) => {
      if (signal === 'stop') this.#link.dismissed()
    })
    if (this.#flags.createQueues) await mill.createQueues()
    await worker.start()
    const { queues } = worker
    const { concurrency } = worker.status()
    log.started({ worker: worker.id, queues, concurrency }, () => worker.running)
    this.#link.ready(() => worker.status(), await this.#reporterOf(mill))
    const error = await worker.finished().then(() => undefined, asError)
    this.#reportUnsettled(worker.status().unsettled)
    // A worker that failed may have jobs in hand; they get their grace, as in every stop.
    this.#endWithin(error === undefined ? closeMs : this.#flags.grace + closeMs)
    await mill.close()
    log.stopped()
    if (this.#failed) process.exitCode = exitCodes.failed
    else if (error !== undefined) throw new OperationError(`the worker ended: ${error.message}`, { cause: error })
  }

  /** The reporter of this process, for a supervisor that serves metrics. */
  async #reporterOf(mill: Mill) {
    if (!this.#flags.metrics) return undefined
    const { ProcessReporter } = await import('./process-reporter.js')
    return new ProcessReporter(mill)
  }

  #workerOf({ mill, files }: Loaded): Worker {
    const { queues, concurrency, selector, node, affinity, grace, maxBlock, maxJobs, maxRss, processes } = this.#flags
    if (processes > 1 && mill.store.traits?.shared === false)
      throw new UsageError(
        `--processes needs a store that processes can share; ${mill.store.text} lives in one process only.`,
      )
    const options = {
      ...(concurrency && { concurrency }),
      grace: grace === Number.POSITIVE_INFINITY ? ('none' as const) : grace,
      maxBlock,
      ...defined({ queues, selector, shardsOf: node, affinity }),
      ...(maxJobs && { maxJobs }),
      ...(maxRss && { maxRss }),
    }
    return mill.worker(options, { isSupervised: true, blockedTo: stderr, files })
  }

  /** Reports ended jobs whose settles the store did not get, because it was unavailable. */
  #reportUnsettled(unsettled: number): void {
    if (unsettled === 0) return
    this.#failed = true
    process.stderr.write(
      `millrace: process ${process.pid}: the store did not take ${counted(unsettled, 'report')} in time; the jobs run again when their leases end.\n`,
    )
  }

  #stopFor(cause: StopCause, log: WorkLog | undefined): void {
    const worker = this.#worker
    // Nothing is in hand yet, and loading or opening may take long.
    if (log === undefined || worker === undefined || worker.status().state === 'starting')
      return void leave(exitCodes.ok)
    this.#endWithin(this.#flags.grace + closeMs)
    log.stopping(cause, worker.running)
    // `finished()` rejects with the same error.
    worker.stop().catch(() => {})
  }

  /** An uncaught error: nothing in this process can be relied on any more. */
  #uncaught(error: unknown): void {
    const worker = this.#worker
    const status = worker?.status()
    const inHand = status === undefined ? '' : printable(`; ${inHandText(status.jobs)}`)
    const [first, ...rest] = printableLines(errorText(error, formatError)).split('\n')
    const lines = [`millrace: process ${process.pid}: uncaught ${first}${inHand}`, ...rest]
    process.stderr.write(`${lines.join('\n')}\n`)
    if (worker === undefined || status!.state === 'starting') return void leave(exitCodes.failed)
    if (this.#failed) return
    this.#failed = true
    this.#endWithin(this.#flags.grace + closeMs)
    worker.fail(error)
  }

  /** Ends the process after `ms`, whatever hangs. The first limit holds. */
  #endWithin(ms: number): void {
    if (this.#bound !== undefined || ms === Number.POSITIVE_INFINITY) return
    this.#bound = setTimeout(
      () => {
        const { jobs, unsettled } = this.#worker!.status()
        const left = `${printable(inHandText(jobs))}, ${counted(unsettled, 'report')} unsettled`
        process.stderr.write(
          `millrace: process ${process.pid} did not end within ${formatDuration(ms)} and is given up (${left}); its jobs run again when their leases end.\n`,
        )
        endProcess(exitCodes.failed).catch(() => process.exit(exitCodes.failed))
      },
      Math.min(ms, longestTimerMs),
    )
  }
}

function inHandText(jobs: ReturnType<Worker['status']>['jobs']): string {
  if (jobs.length === 0) return 'no job in hand'
  const named = jobs.slice(0, mostNamed).map(({ queue, task, id }) => `${queue} ${task} ${id}`)
  const more = jobs.length - named.length
  return `${counted(jobs.length, 'job')} in hand: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error))
}

/** Throws if no job could ever run here. Warns, in the first process only, of tasks whose jobs would not be run. */
function refuseIdle({ mill, file, unknownTasks }: Loaded, warns: boolean): void {
  const tasks = [...mill.tasks.values()]
  if (!tasks.some((task) => task.run !== undefined)) {
    throw new UsageError(
      tasks.length === 0
        ? `${file} has no tasks: list them under \`tasks\` in millrace({ … }).`
        : `no task of ${file} has a handler: give it to them as \`run\`, or name the module that attaches them, as in \`millrace work handlers.ts\`.`,
    )
  }
  const warn = (names: readonly string[], what: string) => {
    if (warns && names.length > 0)
      process.stderr.write(`millrace: warning: ${printable(`${names.join(', ')}: ${what}`)}\n`)
  }
  const idle = tasks.filter((task) => task.run === undefined)
  warn(
    idle.map(({ name }) => name),
    'no handler is attached; jobs of this task are left for other workers.',
  )
  warn(
    unknownTasks.map(({ name }) => name),
    `exported by the module but not among the tasks of ${file}; not served.`,
  )
}

/** Ends the process, even while it is still loading. */
function leave(code: number): Promise<never> {
  leaveLoading()
  return endProcess(code)
}

const aliveEveryMs = 1_000

/** The supervisor link: the channel of a worker process to its supervisor. Without a supervisor it does nothing. */
class SupervisorLink {
  /** Resolves when the supervisor is gone; never if there is none. */
  readonly lost: Promise<void>
  readonly #channel: LineChannel | undefined
  /** With `--metrics` only. */
  #reporter: ProcessReporter | undefined
  #isLost = false
  #isSending = false

  /** `dump` is called when the supervisor asks for the state; the supervisor is notified when it is done. */
  constructor(isLinked: boolean, dump: () => void) {
    if (!isLinked) {
      this.lost = new Promise(() => {})
      return
    }
    this.#channel = new LineChannel(new Socket({ fd: linkFd, readable: true, writable: true }), (message) => {
      if (!isSupervisorMessage(message)) return
      if (message.millrace === 'measure') return void this.#measure()
      if (message.millrace === 'died') return processSeenDeaths.see(message)
      dump()
      this.#tell({ millrace: 'dumped' })
    })
    this.lost = this.#channel.closed.then(() => {
      this.#isLost = true
    })
  }

  /** Whether a supervisor watches over this process. */
  get isUp(): boolean {
    return this.#channel !== undefined && !this.#isLost
  }

  /**
   * Reports that the worker takes jobs, then sends a sign of life each second while the event loop runs, with the
   * measures of `reporter`.
   */
  ready(status: () => WorkerStatus, reporter?: ProcessReporter): void {
    this.#reporter = reporter
    const pulse = (): StatusDigest => ({ ...digestOf(status()), ...defined({ measures: reporter?.measures }) })
    this.#tell({ millrace: 'ready', pulse: pulse() })
    setInterval(() => {
      // Messages that a stopped supervisor does not read must not pile up.
      if (!this.#isSending) this.#tell({ millrace: 'alive', pulse: pulse() })
    }, aliveEveryMs)
  }

  /** Reports whether a job is in hand alone; a death of the process is charged to such a job. */
  alone(isAlone: boolean): void {
    this.#tell({ millrace: 'alone', isAlone })
  }

  /** Reports that it takes no more jobs because an operator said so, and is not to be replaced. */
  dismissed(): void {
    this.#tell({ millrace: 'dismissed' })
  }

  recycling(): void {
    this.#tell({ millrace: 'recycling' })
  }

  /** Reports that it takes no more jobs because of an error, and ends when those in hand have ended. */
  failing(): void {
    this.#tell({ millrace: 'failing' })
  }

  /** Never rejects. */
  async #measure(): Promise<void> {
    const reading = await this.#reporter?.read().catch(() => undefined)
    this.#tell({ millrace: 'measured', reading })
  }

  #tell(message: ProcessMessage): void {
    if (!this.isUp) return
    this.#isSending = true
    // A message that cannot be sent does not matter: the loss of the supervisor is an event of its own.
    void this.#channel!.say(message).then(() => {
      this.#isSending = false
    })
  }
}
