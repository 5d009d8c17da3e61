/** The supervisor link: the channel of a worker process to its supervisor. Without a supervisor it does nothing. */

import { Socket } from 'node:net'
import { LineChannel } from '../../runtime/line-channel.js'
import { processSeenDeaths } from '../../runtime/seen-deaths.js'
import type { ProcessReporter } from './process-reporter.js'
import {
  digestOf,
  isSupervisorMessage,
  linkFd,
  type ProcessMessage,
  type StatusDigest,
  type WorkerStatus,
} from './supervisor-messages.js'

const aliveEveryMs = 1_000

export class SupervisorLink {
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
    this.#channel = new LineChannel(new Socket({ fd: linkFd, readable: true, writable: true }), (word) => {
      if (!isSupervisorMessage(word)) return
      if (word.millrace === 'measure') return void this.#measure()
      if (word.millrace === 'died') return processSeenDeaths.see(word)
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
    const pulse = (): StatusDigest => ({ ...digestOf(status()), ...(reporter && { measures: reporter.measures }) })
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

  /** Reports that it takes no more jobs by an order, and is not to be replaced. */
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

  #tell(word: ProcessMessage): void {
    if (!this.isUp) return
    this.#isSending = true
    // A message that cannot be sent does not matter: the loss of the supervisor is an event of its own.
    void this.#channel!.say(word).then(() => {
      this.#isSending = false
    })
  }
}
