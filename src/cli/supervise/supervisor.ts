/**
 * The supervisor of `millrace work`: keeps a number of worker processes running, and ends when all of them have
 * stopped.
 *
 * It runs no job and loads no user code, so user code cannot end it. The first process starts alone, so that a mistake
 * in the configuration or the store is reported once. A process that dies is replaced, one that recycles is relieved,
 * one that gives no sign of life is killed. A process that an operator stops is not replaced.
 */

import { type Random, systemRandom } from '../../core/platform/clock.js'
import { formatDuration } from '../../core/values/duration.js'
import type { MillMetrics } from '../../measures/mill-metrics.js'
import { SeenDeaths } from '../../runtime/process/seen-deaths.js'
import { exitCodes } from '../process/exit-code.js'
import type { StopCause } from '../process/stop-request.js'
import type { Terminal } from '../terminal/terminal.js'
import { type End, ForkedWorker, type ProcessReport } from './forked-worker.js'
import { dumpProcesses, dumpSilent } from './state-dump.js'
import type { ProcessMessage } from './supervisor-messages.js'

interface SupervisorSettings {
  /** The arguments of a worker process. */
  readonly args: readonly string[]
  readonly processes: number
  readonly graceMs: number
  readonly maxBlockMs: number
  /** Called for each process that has ended; `isDeath`: it was not asked to end. */
  readonly ended?: (report: ProcessReport, isDeath: boolean) => void
}

/** The place of one process and of its successors. */
interface ProcessSlot {
  deaths: number
  restarts: number
  /** Whether a process of it has ever been ready. */
  served: boolean
  /** Processes that take no more jobs and have not ended. */
  leaving: number
  /** A successor is due when one of those has ended. */
  isWaiting: boolean
  /** An operator stops its process, which is not replaced. */
  isClosed: boolean
  restart: NodeJS.Timeout | undefined
}

const watchEveryMs = 500
/**
 * The extra time after `maxBlock`, at which a process gives up its leases. It signs once a second, and may still come
 * back within this time.
 */
const blockMarginMs = 2_000
/**
 * The extra time for a stop. A process ends by itself within its grace and a second; only one that cannot is still
 * there after this.
 */
const stopMarginMs = 1_500
const answerWithinMs = 1_000
/** A process that leaves sooner after its start than this would be replaced again and again. */
const wornOutMs = 10_000
/** The most processes of one place that finish their last jobs while another takes the next. */
const mostLeaving = 1
/** The longest a timer can wait: 24 days. */
const longestTimerMs = 2 ** 31 - 1

export class Supervisor {
  readonly #settings: SupervisorSettings
  readonly #terminal: Terminal
  readonly #random: Random
  readonly #startedAt = performance.now()
  readonly #watched = new AwakeTime(performance.now())
  readonly #places: readonly ProcessSlot[]
  readonly #processes = new Set<ForkedWorker>()
  readonly #deaths = new SeenDeaths()
  /** Processes that were asked for their state and have not answered yet. */
  readonly #asked = new Set<ForkedWorker>()
  #stopping = false
  #code: number = exitCodes.ok
  #finish = (_code: number) => {}

  constructor(settings: SupervisorSettings, terminal: Terminal, random: Random = systemRandom) {
    this.#settings = settings
    this.#terminal = terminal
    this.#random = random
    this.#places = Array.from({ length: settings.processes }, () => ({
      deaths: 0,
      restarts: 0,
      served: false,
      leaving: 0,
      isWaiting: false,
      isClosed: false,
      restart: undefined,
    }))
  }

  /** Starts the processes; resolves with the exit code of the command when the last has ended. */
  async run(): Promise<number> {
    if (this.#stopping) return this.#code
    const finished = new Promise<number>((resolve) => {
      this.#finish = resolve
    })
    const watch = setInterval(() => this.#watch(), watchEveryMs)
    this.#fork(this.#places[0]!, ['--first'])
    const code = await finished
    clearInterval(watch)
    return code
  }

  /**
   * Asks all of them to stop, and kills those that have not ended within the grace. A second call changes nothing.
   * `change`: others are started in their place.
   */
  stop(cause: StopCause | 'change'): void {
    if (this.#stopping) return
    const running = this.#processes.size
    this.#terminal.event('processes.stopping', { cause, running }, () => {
      const of = running === 1 ? 'the process' : `${running} processes`
      if (cause === 'change') return `stopping ${of}`
      return `stopping ${of} (${cause}); again ends ${running === 1 ? 'it' : 'them'} at once`
    })
    this.#end()
  }

  /** Ends all of them at once, whatever they do. */
  kill(): void {
    for (const process of this.#processes) process.kill('SIGKILL')
  }

  /**
   * Prints the processes, and asks each to print its own state. For one that does not answer it prints the last
   * message.
   */
  dump(): void {
    dumpProcesses(this.#terminal, this.reports(), performance.now() - this.#startedAt)
    for (const process of this.#processes) {
      this.#asked.add(process)
      process.tell({ millrace: 'dump' })
    }
    setTimeout(() => {
      for (const process of this.#asked) dumpSilent(this.#terminal, process.report(performance.now()))
      this.#asked.clear()
    }, answerWithinMs)
  }

  reports(): ProcessReport[] {
    const now = performance.now()
    return [...this.#processes].map((process) => process.report(now))
  }

  /** A reading of the store by the process that was heard last. Rejects if there is none, or it cannot read. */
  async measure(): Promise<MillMetrics> {
    const now = performance.now()
    const running = [...this.#processes].filter((process) => process.report(now).state === 'running')
    const [process] = running.sort((a, b) => a.report(now).heardMs - b.report(now).heardMs)
    if (process === undefined) throw new Error('no process runs that could read the store')
    return process.measure()
  }

  #fork(place: ProcessSlot, more: readonly string[] = []): void {
    const process = new ForkedWorker([...this.#settings.args, ...more], place.restarts, (message) =>
      this.#heard(message, process, place),
    )
    process.heardAtWatchedMs = this.#watched.ms
    for (const death of this.#deaths.all) process.tell({ millrace: 'died', ...death })
    this.#processes.add(process)
    void process.ended.then((end) => this.#ended(end, process, place))
  }

  #heard({ millrace }: ProcessMessage, process: ForkedWorker, place: ProcessSlot): void {
    process.heardAtWatchedMs = this.#watched.ms
    if (millrace === 'dumped') this.#asked.delete(process)
    if (process.ready && !place.served) this.#serves(place)
    if (millrace === 'recycling' || millrace === 'failing') this.#relieve(process, place, millrace === 'failing')
  }

  /**
   * Starts a successor while a leaving process still finishes its jobs. It starts at once, but not for a process that
   * failed or left soon after its start, and only while at most one process of the place is leaving.
   */
  #relieve(process: ForkedWorker, place: ProcessSlot, hasFailed: boolean): void {
    place.leaving += 1
    if (this.#stopping) return
    const livedMs = performance.now() - process.forkedAt
    const isEarly = hasFailed || livedMs < wornOutMs
    place.deaths = isEarly ? deathsInARow(place.deaths, livedMs) : 0
    if (place.leaving > mostLeaving) {
      place.isWaiting = true
      return
    }
    const restartMs = isEarly ? restartDelayMs(place.deaths, this.#random) : 0
    const when = restartMs === 0 ? 'at once' : `in ${formatDuration(restartMs)}`
    this.#terminal.event(
      'process.relieved',
      { child: process.pid, restartMs },
      () => `process ${process.pid} takes no more jobs; another starts ${when}`,
    )
    place.restart = setTimeout(() => this.#fork(place), restartMs)
  }

  #serves(place: ProcessSlot): void {
    place.served = true
    if (this.#stopping) return
    const [first, ...others] = this.#places
    if (place === first) for (const other of others) this.#fork(other)
    if (!this.#places.every(({ served }) => served)) return
    const pids = [...this.#processes].map(({ pid }) => pid)
    this.#terminal.event('processes.started', { pids }, () =>
      pids.length === 1 ? `supervises process ${pids[0]}` : `supervises ${pids.length} processes: ${pids.join(', ')}`,
    )
  }

  #ended(end: End, process: ForkedWorker, place: ProcessSlot): void {
    this.#processes.delete(process)
    this.#asked.delete(process)
    this.#tellDeath(end, process)
    const isTold = this.#stopping || process.recycling || process.isDismissed || process.told !== undefined
    this.#settings.ended?.(process.report(performance.now()), !isTold)
    if (process.recycling) place.leaving -= 1
    if (this.#stopping) this.#stopped(end, process)
    else if (process.recycling) this.#left(end, process, place)
    else if (process.isDismissed) this.#dismissed(end, process, place)
    // Once another place has served, the configuration is known to be good.
    else if (!this.#places.some(({ served }) => served)) this.#refused(end, process)
    else this.#replace(end, process, place)
    this.#endWithLast()
  }

  /** Tells the other processes, and later ones, how this one died: the process that ends its claims stores it. */
  #tellDeath({ code, signal }: End, { pid, told }: ForkedWorker): void {
    // Killed by this supervisor: the signal would say nothing of the cause.
    if (told === 'SIGKILL') return
    const death = { pid, code: signal === null ? code : null, signal }
    this.#deaths.see(death)
    for (const other of this.#processes) other.tell({ millrace: 'died', ...death })
  }

  #left(end: End, process: ForkedWorker, place: ProcessSlot): void {
    if (end.code !== exitCodes.ok) this.#report(end, process)
    if (!place.isWaiting) return
    place.isWaiting = false
    this.#fork(place)
  }

  #dismissed(end: End, process: ForkedWorker, place: ProcessSlot): void {
    place.isClosed = true
    if (end.code !== exitCodes.ok) this.#report(end, process)
  }

  /** The command ends with the last of its places, and with the last process that was still leaving one. */
  #endWithLast(): void {
    const isLast = !this.#stopping && this.#processes.size === 0
    if (isLast && this.#places.every(({ isClosed }) => isClosed)) this.#finish(this.#code)
  }

  #stopped(end: End, process: ForkedWorker): void {
    const code = codeAfterStop(end, process.told)
    this.#code = Math.max(this.#code, code)
    // A kill was reported when it happened.
    if (code !== exitCodes.ok && process.told !== 'SIGKILL') this.#report(end, process)
    if (this.#processes.size === 0) this.#finish(this.#code)
  }

  /**
   * The process ended before its place ever served, for a reason that a second start would meet again. It has reported
   * the reason.
   */
  #refused(end: End, process: ForkedWorker): void {
    this.#code = end.code === exitCodes.ok ? exitCodes.failed : end.code
    if (end.code !== exitCodes.usage) this.#report(end, process, ' before it was ready; the command ends')
    this.#end()
  }

  #replace(end: End, process: ForkedWorker, place: ProcessSlot): void {
    // A death that is charged to the one job in hand says nothing about the next process.
    if (!process.isAlone) place.deaths = deathsInARow(place.deaths, performance.now() - process.forkedAt)
    place.restarts += 1
    const restartMs = process.isAlone ? 0 : restartDelayMs(place.deaths, this.#random)
    const when = restartMs === 0 ? 'at once' : `in ${formatDuration(restartMs)}`
    this.#report(end, process, `, another starts ${when}`, { restartMs })
    place.restart = setTimeout(() => this.#fork(place), restartMs)
  }

  #report(end: End, { pid }: ForkedWorker, consequence = '', fields: object = {}): void {
    const { code, signal, words } = end
    const event = { child: pid, code, signal, running: this.#processes.size, ...fields }
    this.#terminal.event('process.exited', event, () =>
      this.#terminal.colors.red(`process ${pid} ${words}${consequence}`),
    )
  }

  /**
   * Kills processes that give no sign of life. Such a process has a blocked loop and has given up its leases by now:
   * others run its jobs.
   */
  #watch(): void {
    this.#watched.tick(performance.now())
    const { maxBlockMs } = this.#settings
    for (const process of this.#processes) {
      const silentMs = this.#watched.ms - process.heardAtWatchedMs
      if (!process.ready || process.told === 'SIGKILL' || silentMs <= maxBlockMs + blockMarginMs) continue
      this.#killed(
        process,
        `has given no sign of life for ${formatDuration(silentMs)}: its event loop is blocked, or it is stopped`,
      )
    }
  }

  #end(): void {
    this.#stopping = true
    for (const { restart } of this.#places) clearTimeout(restart)
    for (const process of this.#processes) if (process.told === undefined) process.kill('SIGTERM')
    if (this.#processes.size === 0) this.#finish(this.#code)
    const { graceMs } = this.#settings
    if (graceMs !== Number.POSITIVE_INFINITY)
      setTimeout(() => this.#overdue(), Math.min(graceMs + stopMarginMs, longestTimerMs))
  }

  #overdue(): void {
    for (const process of this.#processes)
      this.#killed(process, `has not ended within its grace of ${formatDuration(this.#settings.graceMs)}`)
  }

  #killed(process: ForkedWorker, reason: string): void {
    const { pid } = process
    process.kill('SIGKILL')
    this.#terminal.event('process.killed', { child: pid, reason }, () =>
      this.#terminal.colors.red(`process ${pid} ${reason}; killed`),
    )
  }
}

/**
 * The exit code of a stopped process. One that was signalled before it listened had nothing in hand; one that had to be
 * killed did not stop well.
 */
function codeAfterStop({ code, signal }: End, told: NodeJS.Signals | undefined): number {
  if (signal === null || signal !== told) return code
  return signal === 'SIGKILL' ? exitCodes.failed : exitCodes.ok
}

/** A tick that comes later than this was delayed from outside. */
const longestTickMs = 1_000

/**
 * Awake time: the milliseconds in which the supervisor itself was running. The count stops while the supervisor is
 * stopped or starved, because the silence of others in that time says nothing about them.
 */
export class AwakeTime {
  #ms = 0
  #tickedAt: number

  /** `now`: monotonic, here and below. */
  constructor(now: number) {
    this.#tickedAt = now
  }

  get ms(): number {
    return this.#ms
  }

  /** To be called several times a second. */
  tick(now: number): void {
    this.#ms += Math.min(now - this.#tickedAt, longestTickMs)
    this.#tickedAt = now
  }
}

const firstDelayMs = 250
const longestDelayMs = 30_000
/** A process that lived this long was healthy: its death says nothing about the next. */
const forgottenAfterMs = 60_000

/** The deaths in a row in one place, after one more of a process that lived for `livedMs`. */
export function deathsInARow(before: number, livedMs: number): number {
  return livedMs >= forgottenAfterMs ? 1 : before + 1
}

/**
 * 0 after the first death; then 250 ms, doubling to 30 s. A random part of up to a half is subtracted, so places that
 * die together do not restart together.
 */
export function restartDelayMs(deaths: number, random: Random): number {
  if (deaths <= 1) return 0
  const wholeMs = Math.min(firstDelayMs * 2 ** (deaths - 2), longestDelayMs)
  return Math.round(wholeMs * (1 - random() / 2))
}
