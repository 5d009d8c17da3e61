/**
 * The process pool of a worker: hands each isolated job to a process of its own, and judges processes that end without
 * having settled their job.
 */

import { longestTimerMs } from '../../core/platform/timer.js'
import type { Span } from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import type { AnySingleTask } from '../../core/task/task.js'
import { sharedMono } from '../../runtime/leases/lease-messages.js'
import { processIdentity } from '../../runtime/process/process-identity.js'
import type { JobExecution } from '../../runtime/run/execution.js'
import { emitStarted, refOf } from '../../runtime/run/run-events.js'
import { interrupted, type Verdict } from '../../runtime/run/verdict.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Store } from '../../stores/contract/store.js'
import { affinityVariable, slotVariable, withheldNames } from './child-environment.js'
import type { ChildMessage, ChildVerdict } from './child-messages.js'
import { IsolatedProcess, type ProcessEnd, verdictOnDeath } from './child-process.js'
import { endRemainsAnew } from './job-group.js'

/** Receives what becomes of executions in processes of their own. */
export interface PoolReport {
  /** Its process keeps the lease from now on, and settles it. */
  handedOver(execution: JobExecution): void
  /** Its process has settled it; `released` follows. */
  reported(execution: JobExecution, verdict: ChildVerdict): void
  /** Its process has not settled it. */
  decided(execution: JobExecution, verdicts: readonly Verdict[]): void
  /** Its process was killed because its lease is lost; `released` follows. */
  lost(execution: JobExecution, child: number | undefined): void
  /** Its process has ended, or goes on without this one. */
  released(execution: JobExecution): void
}

/** The start settings for the processes of a worker. */
export interface ProcessSource {
  /** The program of the process. */
  readonly entry: URL
  /** Anything that it needs besides its job to find the task and the store; must be possible to copy. */
  readonly from: unknown
}

/** A process ends itself at its time limit; if it cannot, the worker ends it this much later. */
const overdueMs = 10_000
/** A process whose module has not loaded by then never will. */
const loadMs = 60_000
/**
 * The time that a process has to put its job back after it was told to stop. Then it is killed; if its job has ended, it is left to
 * itself, and settles it.
 */
const stopMs = 400

interface Running {
  readonly execution: JobExecution
  readonly runner: IsolatedProcess
  isHandedOver: boolean
  /** When its handler was called, on the monotonic clock. */
  startedAt: number | undefined
  /** The job has ended, and its process settles it, or has. */
  isDecided: boolean
  isStopping: boolean
  timer: NodeJS.Timeout | undefined
}

export class ProcessPool {
  readonly #surroundings: WorkerSurroundings
  readonly #registry: Registry
  readonly #store: Pick<Store, 'extend'>
  readonly #affinity: string
  readonly #source: ProcessSource
  readonly #report: PoolReport
  readonly #running = new Map<JobExecution, Running>()
  /** Told to stop before their processes existed. */
  readonly #stopped = new Set<JobExecution>()
  /** Tasks whose withheld variables were looked at. */
  readonly #warned = new Set<AnySingleTask>()

  constructor(
    surroundings: WorkerSurroundings,
    registry: Registry,
    store: Pick<Store, 'extend'>,
    affinity: string,
    source: ProcessSource,
    report: PoolReport,
  ) {
    this.#surroundings = surroundings
    this.#registry = registry
    this.#store = store
    this.#affinity = affinity
    this.#source = source
    this.#report = report
  }

  /** Never rejects. */
  async run(execution: JobExecution): Promise<void> {
    const source = this.#source
    const report = this.#report
    const { worker, events, clock } = this.#surroundings
    const { claim, task } = execution
    const { onSupervisorLoss, module, env = [], maxHeapBytes } = task.isolation!
    const { timeLimitMs } = task
    this.#warnOfEnvironment(task)
    const { leaseMs, results } = this.#registry.queue(claim.queue)
    let end: ProcessEnd
    endRemainsAnew(worker, events)
    try {
      const runner = await IsolatedProcess.start({
        entry: source.entry,
        assignment: {
          ...{ claim, leaseMs, results, worker, slot: execution.slot, supervisor: process.pid, from: source.from },
          ...{ onSupervisorLoss, timeLimitMs, module, start: movedBy(execution.start, sharedMono() - clock.mono()) },
        },
        ...{ env, maxHeapBytes },
        variables: { [affinityVariable]: this.#affinity, [slotVariable]: String(execution.slot) },
        heard: (message) => this.#onMessage(execution, message),
      })
      void this.#announce(claim, runner.pid, leaseMs)
      const timer = setTimeout(() => runner.kill(), loadMs)
      const isNot = { isHandedOver: false, isDecided: false, isStopping: false }
      const running = { execution, runner, startedAt: undefined, timer, ...isNot }
      this.#running.set(execution, running)
      if (this.#stopped.delete(execution)) this.stop(execution)
      end = await runner.ended
    } catch (error) {
      end = { kind: 'unable', error: String(error) }
    }
    const running = this.#running.get(execution)
    // It was left to itself.
    if (running === undefined && end.kind !== 'unable') return
    clearTimeout(running?.timer)
    this.#running.delete(execution)
    this.#stopped.delete(execution)
    if (end.kind === 'died') execution.unsentLog = end.unsent
    if (end.kind === 'settled') report.reported(execution, end.verdict)
    // The store knows what became of the job, and has perhaps given it to another worker.
    else if (end.kind === 'lost') report.lost(execution, running?.runner.pid)
    else report.decided(execution, [this.#verdictOn(execution, end, running)])
    report.released(execution)
  }

  #warnOfEnvironment(task: AnySingleTask): void {
    if (task.isolation!.env !== undefined || this.#warned.has(task)) return
    this.#warned.add(task)
    const names = withheldNames(process.env)
    if (names.length > 0) this.#surroundings.events.emit('env.withheld', { task: task.name, queue: task.queue, names })
  }

  /**
   * Makes its process put the job back, or kills the process and puts the job back. If the job has ended, its process settles it,
   * perhaps after this worker has left it. Harmless for one that has ended.
   */
  stop(execution: JobExecution): void {
    const running = this.#running.get(execution)
    if (running === undefined) {
      this.#stopped.add(execution)
      return
    }
    running.isStopping = true
    running.runner.tell({ kind: 'stop' })
    clearTimeout(running.timer)
    running.timer = setTimeout(() => this.#giveUp(running), stopMs)
  }

  /** Kills the process. A job that has ended would be done again if its process were killed before the settle. */
  #giveUp(running: Running): void {
    const { execution, runner, isHandedOver, isDecided } = running
    if (!isHandedOver || !isDecided || runner.hasSettled) return void runner.kill()
    this.#leave(running)
    this.#report.released(execution)
  }

  /** Lets it go on without this process if it may; false if it must be stopped. */
  leave(execution: JobExecution): boolean {
    const running = this.#running.get(execution)
    if (!running?.isHandedOver || execution.task.isolation!.onSupervisorLoss === 'exit') return false
    // This worker must report and count its end, as the process has heard.
    if (running.runner.hasSettled) return false
    this.#leave(running)
    return true
  }

  #leave({ execution, runner, timer }: Running): void {
    clearTimeout(timer)
    this.#running.delete(execution)
    runner.leave()
    const { events, worker } = this.#surroundings
    events.emit('job.detached', { ...refOf(execution.claim), worker, child: runner.pid })
  }

  /**
   * The claim names the process before the process keeps it: if this worker dies meanwhile, nobody takes the job for
   * lost.
   */
  async #announce({ queue, id, fence }: Claim, pid: number, leaseMs: number): Promise<void> {
    const store = this.#store
    const { events } = this.#surroundings
    try {
      await store.extend([{ queue, id, fence, leaseMs, beat: processIdentity(pid) }])
    } catch (error) {
      // The process does it itself, once it runs and the store is back.
      events.emit('store.failed', { call: 'extend', error, retryMs: undefined })
    }
  }

  #onMessage(execution: JobExecution, message: ChildMessage): void {
    const running = this.#running.get(execution)
    if (running === undefined) return
    if (message.kind === 'keeping' && !running.isHandedOver) {
      running.isHandedOver = true
      this.#report.handedOver(execution)
    } else if (message.kind === 'started') this.#started(running)
    else if (message.kind === 'decided') running.isDecided = true
  }

  #started(running: Running): void {
    const { execution, runner } = running
    const { events, worker, clock } = this.#surroundings
    const { claim, task } = execution
    running.startedAt = clock.mono()
    execution.handlerAt = running.startedAt
    emitStarted(events, claim, worker)
    clearTimeout(running.timer)
    const longestMs = task.timeLimitMs + overdueMs
    running.timer = longestMs > longestTimerMs ? undefined : setTimeout(() => runner.kill(), longestMs)
  }

  #verdictOn(
    execution: JobExecution,
    end: Exclude<ProcessEnd, { kind: 'settled' | 'lost' }>,
    running: Running | undefined,
  ): Verdict {
    const { claim, task } = execution
    if (running?.isStopping) return interrupted
    const startedAt = running?.startedAt
    const isOverdue =
      startedAt !== undefined &&
      end.kind === 'died' &&
      end.signal === 'SIGKILL' &&
      this.#surroundings.clock.mono() - startedAt >= task.timeLimitMs
    const pid = running?.runner.pid
    return verdictOnDeath({ claim, task, pid, end, hasStarted: startedAt !== undefined, isOverdue }, this.#surroundings)
  }
}

/** The same span on another clock. */
function movedBy(span: Span | undefined, byMs: number): Span | undefined {
  return span && { from: span.from + byMs, to: span.to + byMs }
}
