/**
 * A worker: takes jobs from its queues and runs them, `concurrency` at a time, from its start to its end. The claim
 * loop claims, `InFlight` runs and settles; this class decides when that begins and how it ends.
 */
/// <reference lib="esnext.disposable" preserve="true" />

import { ConfigError } from '../core/errors.js'
import type { RecycleReason } from '../core/events.js'
import { messageOf } from '../core/messages/describe.js'
import { timerMs } from '../core/platform/timer.js'
import { callForms, callOptions, refuseMore } from '../core/values/call-check.js'
import { defined } from '../core/values/defined.js'
import { type Duration, durationMs } from '../core/values/duration.js'
import { onceThere, warnOfWaiting } from '../runtime/outage.js'
import { nextWorkerId, processIdentity } from '../runtime/process/process-identity.js'
import { Repeating } from '../runtime/repeating.js'
import { endsWithin } from '../runtime/with-timeout.js'
import type { WorkerSignal } from '../stores/contract/worker-registry.js'
import type { Connection, WorkerAssembly, WorkerParts, WorkerSettings } from './assemble-worker.js'
import { ownUnwatchedHeaps } from './isolated/memory-bound.js'
import { Slots } from './slots.js'
import { jobStatuses, type WorkerStatus } from './worker-status.js'

/** How often to look whether the worker has outgrown its bounds, or holds jobs that no slot takes. */
const watchMs = 500
/**
 * The time that a stop may take beyond its grace, until the store has the last settles; after that leases end by
 * themselves.
 */
const settleMarginMs = 400
/** The time in which processes of isolated jobs end that were told to, or are killed. */
const processesMs = 600
/** The time for other calls at the end, whose failure harms nobody. */
const courtesyMs = 500
/** With an unlimited grace the store still needs a bound. */
const boundlessSettleMs = 5_000

const checkStop = callOptions('stop', { grace: callForms.own })

/**
 * A worker, made by `mill.worker()`. When it starts, it
 *
 * 1. refuses to start if it could run no job: no task has a handler, or the process is larger than `maxRss` already;
 * 2. opens the store, and waits for a server that is away;
 * 3. checks that isolated jobs could start, calls `onWorkerStart`, opens the `context`, and has leases kept from now on;
 * 4. adopts the isolated jobs of dead workers of its machine;
 * 5. registers itself, looks for dead workers, ticks schedules while it leads them, and claims.
 *
 * Twice a second it puts back jobs that no slot takes, and ends itself if it has taken `maxJobs`, has outgrown `maxRss`, or
 * has lost slots to handlers that do not end: one if a supervisor replaces it, otherwise all. When it stops, it
 *
 * 1. claims nothing more, puts back every job that no handler has begun, and leaves isolated jobs that may go on;
 * 2. waits for running handlers, for `grace` at most, then aborts them and releases their jobs; after a failure it leaves
 *    them to their leases;
 * 3. puts back what a claim still under way brings;
 * 4. waits until the store has all settles, or a moment beyond the grace;
 * 5. takes itself out of the registry, and, as the last of its mill, closes the `context` and calls `onWorkerStop`.
 */
export class Worker implements AsyncDisposable {
  readonly id: string
  readonly #parts: WorkerParts
  readonly #settings: WorkerSettings
  readonly #slots: Slots
  readonly #identity = processIdentity()
  readonly #watch: Repeating
  #state: WorkerStatus['state'] = 'starting'
  #starting: Promise<void> | undefined
  #assembly: WorkerAssembly | undefined
  #intakeOver: Promise<void> = Promise.resolve()
  #end: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined
  readonly #ended: Promise<void>
  #resolveEnded: () => void = () => {}
  #storeAnsweredAt = 0
  /** When the grace of its end is over, on the monotonic clock. */
  #until = Number.POSITIVE_INFINITY
  #patience: NodeJS.Timeout | undefined
  readonly #isGraceOver: Promise<void>
  #graceOver: () => void = () => {}

  /** @internal */
  constructor(parts: WorkerParts, settings: WorkerSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#slots = new Slots(settings.concurrency)
    this.#watch = new Repeating(
      watchMs,
      async () => this.#look(),
      () => {},
    )
    this.id = nextWorkerId(this.#identity)
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve
    })
    this.#isGraceOver = new Promise((resolve) => {
      this.#graceOver = resolve
    })
  }

  /** The queues that it serves. */
  get queues(): readonly string[] {
    return this.#settings.queues.map(({ name }) => name)
  }

  /** The number of jobs held now, including those of abandoned handlers. */
  get running(): number {
    return this.#slots.used
  }

  /**
   * Opens the store, calls `onWorkerStart`, opens the `context` of the mill and begins to claim. It waits for a remote
   * store that is away (`store.failed`) until the worker is stopped, and tries for half a minute to open the context
   * (`context.failed`); if nothing listens for the event, Node warns once (`MILLRACE_STORE_AWAY`,
   * `MILLRACE_CONTEXT_FAILED`). Throws `ConfigError` if no task of the mill has a handler, `ContextError` if the context
   * cannot be opened, and the errors of opening the store and of the hook. Starting twice is harmless.
   */
  start(): Promise<void> {
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    return this.#starting
  }

  async #start(): Promise<void> {
    if (this.#state !== 'starting') return
    this.#refuseIdle()
    this.#refuseSmallRss()
    // Loaded while the store is opened. A process that only enqueues does not need it.
    const [connection, { assembleWorker }] = await Promise.all([this.#connected(), import('./assemble-worker.js')])
    if (connection === undefined || this.#end !== undefined) return
    if (this.#parts.processes !== undefined) await this.#readyForProcesses()
    await this.#parts.onStart(() => this.#end !== undefined)
    // Not awaited: leases are kept meanwhile, and the thread is up after a second.
    void connection.keeper.start()
    // Stopped meanwhile: close what was opened.
    if (this.#end !== undefined) return this.#parts.onEnd(undefined)
    const assembly = assembleWorker(connection, this.#parts, this.#settings, {
      id: this.id,
      identity: this.#identity,
      slots: this.#slots,
      beaten: (at) => {
        this.#storeAnsweredAt = at
      },
      state: () => (this.#end === undefined ? 'running' : 'stopping'),
      signalled: (signal) => this.#obey(signal),
    })
    this.#assembly = assembly
    this.#state = 'running'
    this.#storeAnsweredAt = this.#parts.clock.mono()
    await assembly.adoption?.start()
    if (this.#end !== undefined) return
    assembly.heartbeat.start()
    assembly.sharing?.start()
    assembly.limits?.start()
    this.#watch.start()
    assembly.recoverer?.start()
    assembly.schedules?.start()
    assembly.joins?.start()
    assembly.deaths?.start()
    this.#parts.events.emit('worker.started', { worker: this.id, queues: this.queues })
    this.#intakeOver = assembly.claimLoop.run().catch((error: unknown) => this.#failWith(error))
  }

  /** The open store; undefined if the worker was stopped while the store was away. */
  #connected(): Promise<Connection | undefined> {
    const { connect, events, random, waitsForStore } = this.#parts
    if (!waitsForStore) return connect()
    let isWarned = false
    const failed = (error: unknown, retryMs: number) => {
      if (!isWarned && !events.has('store.failed')) warnOfWaiting('', error, 'MILLRACE_STORE_AWAY')
      isWarned = true
      events.emit('store.failed', { call: 'open', error, retryMs })
    }
    return onceThere(connect, { isOver: () => this.#end !== undefined, random, failed })
  }

  /** A worker that can run no job would only take jobs from those that can. */
  #refuseIdle(): void {
    const { registry } = this.#parts
    if (registry.hasHandler) return
    const message =
      registry.tasks.size === 0
        ? 'must hold at least one task: list those to be run under `tasks` in millrace({ … })'
        : 'must hold at least one task with a handler: give it a `run`, or attach one by `task.handle(run)` before the start'
    throw new ConfigError('the worker', [{ path: 'tasks', message }])
  }

  /** A process that is too large before its first job would be replaced for ever and never take one. */
  #refuseSmallRss(): void {
    const { maxRssBytes } = this.#settings
    const takes = process.memoryUsage.rss()
    if (maxRssBytes === undefined || takes < maxRssBytes) return
    const message = `is ${maxRssBytes} bytes, but the process takes ${takes} before its first job; use at least twice as many`
    throw new ConfigError('the worker', [{ path: 'maxRss', message }])
  }

  /** Rejects with `ConfigError` if no process could be started: each isolated job would be put back again and again. */
  async #readyForProcesses(): Promise<void> {
    const { openCapture } = await import('./isolated/child-output.js')
    const { printing, reading } = await openCapture()
    for (const socket of [printing, reading]) socket.destroy()
    const { registry, events } = this.#parts
    const tasks = ownUnwatchedHeaps(registry)
    if (tasks.length > 0) events.emit('heap.unwatched', { worker: this.id, tasks })
  }

  /** Resolves when the worker has stopped; rejects with the error that ended it. */
  async finished(): Promise<void> {
    await this.#ended
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /**
   * Claims nothing from now on, puts back every job that no handler has begun, and lets running handlers finish within
   * `grace` (default: the worker's). Handlers that do not finish are aborted and their jobs released, uncounted.
   * Resolves when everything is settled, or at the latest a second after the grace: jobs whose settle the store has not
   * taken by then end with their lease. A second call waits for the first.
   */
  async stop(options: { readonly grace?: Duration | 'none' } = {}): Promise<void> {
    checkStop(options)
    const { grace } = options
    const graceMs =
      grace === undefined
        ? this.#settings.graceMs
        : grace === 'none'
          ? Number.POSITIVE_INFINITY
          : durationMs(grace, 'stop({ grace })')
    return this.#endWithin(graceMs)
  }

  /** The same as `stop`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** Keeps the first deadline. A worker that drains to be replaced gets one only by `stop()`. */
  #endWithin(graceMs: number): Promise<void> {
    if (this.#until === Number.POSITIVE_INFINITY && graceMs !== Number.POSITIVE_INFINITY) {
      this.#until = this.#parts.clock.mono() + graceMs
      this.#patience = setTimeout(() => this.#graceOver(), timerMs(graceMs))
    }
    this.#end ??= this.#finish()
    return this.#end
  }

  /**
   * Ends the worker because of an uncaught error. Like `stop`, but a handler that does not finish within the grace is
   * left to its lease, as if the process had died: it may be the culprit. A job that was claimed alone is the culprit,
   * and fails with the error. `finished()` then rejects with it.
   */
  fail(error: unknown): void {
    this.#failWith(error)
    this.#assembly?.inFlight.failAlone(error instanceof Error ? error : new Error(messageOf(error)))
  }

  /** After a permanent store error, handlers may finish too; their results are lost with the store. */
  #failWith(error: unknown): void {
    if (this.#failure !== undefined || this.#state === 'stopped') return
    this.#failure = { error }
    this.#parts.events.emit('worker.failed', { worker: this.id, error })
    void this.#endWithin(this.#settings.graceMs)
  }

  /** What it does at this moment. */
  status(): WorkerStatus {
    const now = this.#parts.clock.mono()
    const assembly = this.#assembly
    // The question is whether jobs can be taken. While there is nothing to claim, beats show that the store answers.
    const answeredAt =
      assembly?.claimLoop.unansweredSince ??
      Math.max(this.#storeAnsweredAt, assembly?.claimLoop.answeredAt ?? 0, assembly?.keeper.answeredAt ?? 0)
    return {
      id: this.id,
      state: this.#state,
      concurrency: this.#slots.total,
      retired: this.#slots.retired,
      jobs: [
        ...(assembly?.adoption?.statuses() ?? []),
        ...(assembly?.inFlight.executions ?? []).flatMap((execution) => jobStatuses(execution, now)),
      ],
      unsettled: assembly?.inFlight.unsettled ?? 0,
      damaged: assembly?.claimLoop.calls.damaged.names ?? [],
      silentMs: assembly === undefined ? 0 : Math.max(0, Math.round(now - answeredAt)),
    }
  }

  async #finish(): Promise<void> {
    this.#state = 'stopping'
    const { events } = this.#parts
    if (this.#assembly !== undefined) {
      await this.#clearAway(this.#assembly)
      this.#state = this.#failure === undefined ? 'stopped' : 'failed'
      const apiCalls = this.#assembly.store.apiCalls?.()
      events.emit('worker.stopped', { worker: this.id, ...defined({ apiCalls }) })
      await this.#parts.onEnd(this.#failure?.error)
    } else {
      // Otherwise its hook would run, and its lease thread start, after everything was closed.
      await Promise.race([this.#starting?.catch(() => {}), this.#isGraceOver])
      this.#state = 'stopped'
    }
    clearTimeout(this.#patience)
    this.#resolveEnded()
    this.#parts.ended()
  }

  async #clearAway(assembly: WorkerAssembly): Promise<void> {
    const {
      inFlight,
      claimLoop,
      settler,
      recoverer,
      adoption,
      sharing,
      limits,
      heartbeat,
      schedules,
      joins,
      deaths,
      store,
    } = assembly
    const { clock } = this.#parts
    const leftMs = () =>
      this.#until === Number.POSITIVE_INFINITY
        ? boundlessSettleMs
        : Math.max(0, this.#until + settleMarginMs - clock.mono())
    claimLoop.stop()
    inFlight.close()
    recoverer?.stop()
    adoption?.stop()
    const ticksEnded = Promise.all([schedules?.stop(), joins?.stop()])
    await this.#watch.stop()
    await Promise.race([inFlight.ended(), this.#isGraceOver])
    if (this.#failure === undefined) {
      inFlight.giveUpAll()
      // A process puts its job back itself, or is killed, and then this worker does.
      const since = clock.mono()
      await endsWithin(processesMs, inFlight.processesEnded())
      this.#until += clock.mono() - since
    }
    const brieflyMs = () => Math.min(leftMs(), courtesyMs)
    // A claim under way may still bring jobs, which go back at once.
    await endsWithin(brieflyMs(), this.#intakeOver)
    // A claim whose answer was lost may have made claims that only the store knows.
    await endsWithin(brieflyMs(), assembly.claimLoop.calls.unheard.putBack())
    await settler.settled(leftMs())
    assembly.leavePublisher()
    const ended = [sharing?.stop(), limits?.stop(), heartbeat.stop(), ticksEnded, deaths?.stop()]
    const removed = Promise.all(ended).then(() => {
      assembly.signs.stop()
      return store.workers?.remove(this.id)
    })
    await endsWithin(
      brieflyMs(),
      removed.catch(() => {}),
    )
  }

  /** An operator wants it to end. A recycle is of no use without a supervisor. */
  #obey(signal: WorkerSignal): void {
    if (this.#end !== undefined) return
    const { isSupervised } = this.#settings
    this.#parts.events.emit('worker.signalled', { worker: this.id, signal })
    if (signal === 'recycle' && isSupervised) this.#recycle('signalled')
    // `finished()` rejects with the error that may end it.
    else this.stop().catch(() => {})
  }

  /** Takes no more jobs, so that another process can take its place. */
  #recycle(reason: RecycleReason): void {
    if (this.#end !== undefined) return
    this.#parts.events.emit('worker.recycling', { worker: this.id, reason })
    // Its jobs have all the time they need: another process takes the next.
    void this.#endWithin(Number.POSITIVE_INFINITY)
  }

  #look(): void {
    const { maxJobs, maxRssBytes, isSupervised } = this.#settings
    const { inFlight } = this.#assembly!
    inFlight.relieve()
    if (maxJobs !== undefined && inFlight.taken >= maxJobs) this.#recycle('max-jobs')
    else if (maxRssBytes !== undefined && process.memoryUsage.rss() > maxRssBytes) this.#recycle('max-rss')
    else if (this.#slots.retired > 0 && (isSupervised || this.#slots.retired === this.#slots.total))
      this.#recycle('slot-retired')
  }
}

refuseMore('worker.', Worker.prototype, { promised: { start: 0, stop: 1, finished: 0 }, direct: { status: 0 } })
