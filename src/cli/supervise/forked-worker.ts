/** A forked worker: one worker process as its supervisor sees it — what it was told, its last sign of life, its end. */

import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { MillReading } from '../../measures/mill-reading.js'
import { LineChannel } from '../../runtime/line-channel.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import { exitCodes, signalExitCode } from '../output/exit-code.js'
import {
  linkFd,
  type ProcessMessage,
  processMessageIn,
  type StatusDigest,
  type SupervisorMessage,
} from './supervisor-messages.js'

/** How it has ended. */
export interface End {
  readonly code: number
  readonly signal: NodeJS.Signals | null
  /** As in `process 17 was killed by SIGSEGV`. */
  readonly words: string
}

/** One process as health and the state dump show it. Ages are in ms. */
export interface ProcessReport {
  readonly pid: number
  readonly state: StatusDigest['state'] | 'recycling'
  readonly upMs: number
  /** How many processes have died in its place before. */
  readonly restarts: number
  /** Since its last sign of life. */
  readonly heardMs: number
  readonly pulse?: StatusDigest
}

/** How long to wait for the last words of a process that has ended: somebody else may hold its channel open. */
const lastWordsMs = 500
/** How long a process has to read its store for metrics: longer than who asks for them waits. */
const readingMs = 10_000

export class ForkedWorker {
  readonly ended: Promise<End>
  readonly forkedAt = performance.now()
  /** It has taken jobs. */
  ready = false
  /** It takes no more jobs; its successor is there. */
  recycling = false
  /** It takes no more jobs, and nobody is to take its place. */
  isDismissed = false
  /** It has a job in hand alone: its death is charged to that. */
  isAlone = false
  /** What its supervisor has sent it. */
  told: NodeJS.Signals | undefined
  /** What its supervisor's watched time was at its last sign of life. */
  heardAtWatchedMs = 0
  #pulse: StatusDigest | undefined
  #heardAt = this.forkedAt
  readonly #restarts: number
  readonly #child: ChildProcess
  readonly #words: LineChannel | undefined
  /** Who waits for a reading of its store. */
  #measured: ((reading: MillReading | undefined) => void) | undefined

  /** Forks `millrace` with these arguments. One that cannot be started has ended at once. */
  constructor(args: readonly string[], restarts: number, heard: (word: ProcessMessage) => void) {
    this.#restarts = restarts
    const main = fileURLToPath(new URL('../main.js', import.meta.url))
    const child = spawn(process.execPath, [...process.execArgv, main, ...args, '--linked'], {
      // In a session of its own: Ctrl-C reaches the whole group of the terminal, and the process would get it twice.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
    })
    this.#child = child
    // Not the channel of Node's own `fork`, which throws out of our event loop what a handler has written to it.
    const socket = child.stdio[linkFd] as Socket | null | undefined
    this.#words = socket ? new LineChannel(socket, (said) => this.#hear(said, heard)) : undefined
    this.ended = new Promise((resolve) => {
      child.on('error', ({ message }) => {
        // A signal or a word that did not arrive is an error too.
        if (child.pid === undefined)
          resolve({ code: exitCodes.failed, signal: null, words: `could not be started: ${message}` })
      })
      child.once('exit', (code, signal) => void this.#exited(code, signal, resolve))
    })
  }

  /** Never rejects. */
  async #exited(code: number | null, signal: NodeJS.Signals | null, ended: (end: End) => void): Promise<void> {
    await endsWithin(lastWordsMs, this.#words!.closed)
    this.#words!.close()
    ended(endOf(code, signal))
  }

  #hear(said: object, heard: (word: ProcessMessage) => void): void {
    const word = processMessageIn(said)
    if (word === undefined) return
    const isLeaving = word.millrace === 'recycling' || word.millrace === 'failing'
    // The user's code in the process may send anything, also ours twice: one process has one successor.
    if (isLeaving && this.recycling) return
    if (isLeaving) this.recycling = true
    if (word.millrace === 'dismissed') this.isDismissed = true
    if (word.millrace === 'alone') this.isAlone = word.isAlone
    if (word.millrace === 'measured') this.#measured?.(word.reading)
    if ('pulse' in word) {
      // Said only from then on; that first word may have been spoilt by what else was written.
      this.ready = true
      this.#pulse = word.pulse
      this.#heardAt = performance.now()
    }
    heard(word)
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
      ...(pulse === undefined ? {} : { pulse }),
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

  /** Has it read its store; one reading at a time. Rejects where it cannot, or does not answer within 10 s. */
  async measure(): Promise<MillReading> {
    const answer = new Promise<MillReading | undefined>((resolve) => {
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

  tell(word: SupervisorMessage): void {
    // One that has just ended does not hear it, and its end is told anyway.
    void this.#words?.say(word)
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): End {
  if (signal !== null) return { code: signalExitCode(signal), signal, words: `was killed by ${signal}` }
  return { code: code ?? exitCodes.failed, signal, words: `exited with code ${code}` }
}
