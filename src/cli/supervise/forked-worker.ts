/**
 * A forked worker: one worker process from the view of its supervisor: the signals sent to it, its last sign of life,
 * its end.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { entryFile } from '../../core/package-files.js'
import { defined } from '../../core/values/defined.js'
import type { MillMetrics } from '../../measures/mill-metrics.js'
import { LineChannel } from '../../runtime/line-channel.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import { exitCodes, signalExitCode } from '../process/exit-code.js'
import {
  linkFd,
  type ProcessMessage,
  processMessageIn,
  type StatusDigest,
  type SupervisorMessage,
} from './supervisor-messages.js'

/** The end of a process. */
export interface End {
  readonly code: number
  readonly signal: NodeJS.Signals | null
  /** As in `process 17 was killed by SIGSEGV`. */
  readonly words: string
}

/** One process for the health check and the state dump. Ages are in ms. */
export interface ProcessReport {
  readonly pid: number
  readonly state: StatusDigest['state'] | 'recycling'
  readonly upMs: number
  /** The number of processes that have died in its place before. */
  readonly restarts: number
  /** Since its last sign of life. */
  readonly heardMs: number
  readonly pulse?: StatusDigest
}

/** How long to wait for the last messages of a process that has ended: another process may hold its channel open. */
const lastMessagesMs = 500
/** The time limit for reading its store for metrics: longer than the caller waits. */
const readingMs = 10_000

export class ForkedWorker {
  readonly ended: Promise<End>
  readonly forkedAt = performance.now()
  /** It has taken jobs. */
  ready = false
  /** It takes no more jobs; its successor is there. */
  recycling = false
  /** It takes no more jobs, and is not to be replaced. */
  isDismissed = false
  /** It has a job in hand alone, to which its death would be charged. */
  isAlone = false
  /** The last signal that its supervisor sent to it. */
  told: NodeJS.Signals | undefined
  /** The supervisor's awake time at its last sign of life. */
  heardAtWatchedMs = 0
  #pulse: StatusDigest | undefined
  #heardAt = this.forkedAt
  readonly #restarts: number
  readonly #child: ChildProcess
  readonly #channel: LineChannel | undefined
  /** The waiting caller of a reading of its store. */
  #measured: ((reading: MillMetrics | undefined) => void) | undefined

  /** Forks `millrace` with these arguments. A process that cannot be started counts as ended at once. */
  constructor(args: readonly string[], restarts: number, heard: (message: ProcessMessage) => void) {
    this.#restarts = restarts
    const main = fileURLToPath(entryFile('main.js'))
    const child = spawn(process.execPath, [...process.execArgv, main, ...args, '--linked'], {
      // In a session of its own: Ctrl-C reaches the whole group of the terminal, and the process would get it twice.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
    })
    this.#child = child
    // Not the channel of Node's own `fork`, which throws in our event loop if a handler writes garbage to it.
    // Without descriptors left there is no channel, and no `stdio` either.
    const socket = (child.stdio as readonly (Socket | null)[] | undefined)?.[linkFd]
    this.#channel = socket ? new LineChannel(socket, (said) => this.#onMessage(said, heard)) : undefined
    this.ended = new Promise((resolve) => {
      child.on('error', ({ message }) => {
        // A signal or a message that did not arrive is an error too.
        if (child.pid === undefined)
          resolve({ code: exitCodes.failed, signal: null, words: `could not be started: ${message}` })
      })
      child.once('exit', (code, signal) => void this.#exited(code, signal, resolve))
    })
  }

  /** Never rejects. */
  async #exited(code: number | null, signal: NodeJS.Signals | null, ended: (end: End) => void): Promise<void> {
    await endsWithin(lastMessagesMs, this.#channel!.closed)
    this.#channel!.close()
    ended(endOf(code, signal))
  }

  #onMessage(said: object, heard: (message: ProcessMessage) => void): void {
    const message = processMessageIn(said)
    if (message === undefined) return
    const isLeaving = message.millrace === 'recycling' || message.millrace === 'failing'
    // User code in the process may send anything, even our own messages twice: one process has one successor.
    if (isLeaving && this.recycling) return
    if (isLeaving) this.recycling = true
    if (message.millrace === 'dismissed') this.isDismissed = true
    if (message.millrace === 'alone') this.isAlone = message.isAlone
    if (message.millrace === 'measured') this.#measured?.(message.reading)
    if ('pulse' in message) {
      // Sent only from then on, because the first message may be garbled by other writes to the channel.
      this.ready = true
      this.#pulse = message.pulse
      this.#heardAt = performance.now()
    }
    heard(message)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  report(now: number): ProcessReport {
    const pulse = this.#pulse
    return {
      pid: this.pid,
      state: this.#state(),
      upMs: now - this.forkedAt,
      restarts: this.#restarts,
      heardMs: now - this.#heardAt,
      ...defined({ pulse }),
    }
  }

  #state(): ProcessReport['state'] {
    if (this.told !== undefined || this.isDismissed) return 'stopping'
    if (this.recycling) return 'recycling'
    return this.ready ? (this.#pulse?.state ?? 'starting') : 'starting'
  }

  kill(signal: NodeJS.Signals): void {
    this.told = signal
    this.#child.kill(signal)
  }

  /** Makes the process read its store; one reading at a time. Rejects if it cannot, or does not answer within 10 s. */
  async measure(): Promise<MillMetrics> {
    const answer = new Promise<MillMetrics | undefined>((resolve) => {
      this.#measured = resolve
    })
    this.tell({ millrace: 'measure' })
    await endsWithin(readingMs, Promise.race([answer, this.ended]))
    this.#measured?.(undefined)
    this.#measured = undefined
    const reading = await answer
    if (reading === undefined) throw new Error(`process ${this.pid} could not read its store`)
    return reading
  }

  tell(message: SupervisorMessage): void {
    // A process that has just ended misses it; its end is reported anyway.
    void this.#channel?.say(message)
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): End {
  if (signal !== null) return { code: signalExitCode(signal), signal, words: `was killed by ${signal}` }
  return { code: code ?? exitCodes.failed, signal, words: `exited with code ${code}` }
}
