/** The supervisor link: how a worker process speaks with its supervisor. Without one it says nothing to nobody. */

import { Socket } from 'node:net'
import { LineChannel } from '../../runtime/line-channel.js'
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
  /** Resolves when the supervisor is gone; never without one. */
  readonly lost: Promise<void>
  readonly #channel: LineChannel | undefined
  /** With `--metrics` only. */
  #reporter: ProcessReporter | undefined
  #isLost = false
  #isSending = false

  /** `dump` is called when the supervisor asks for the state; it is told when that is done. */
  constructor(isLinked: boolean, dump: () => void) {
    if (!isLinked) {
      this.lost = new Promise(() => {})
      return
    }
    this.#channel = new LineChannel(new Socket({ fd: linkFd, readable: true, writable: true }), (word) => {
      if (!isSupervisorMessage(word)) return
      if (word.millrace === 'measure') return void this.#measure()
      dump()
      this.#tell({ millrace: 'dumped' })
    })
    this.lost = this.#channel.closed.then(() => {
      this.#isLost = true
    })
  }

  /** Somebody is there who watches over this process. */
  get isUp(): boolean {
    return this.#channel !== undefined && !this.#isLost
  }

  /** Says that the worker takes jobs, and from then on each second that its event loop turns; with what `reporter` measures. */
  ready(status: () => WorkerStatus, reporter?: ProcessReporter): void {
    this.#reporter = reporter
    const pulse = (): StatusDigest => ({ ...digestOf(status()), ...(reporter && { measures: reporter.measures }) })
    this.#tell({ millrace: 'ready', pulse: pulse() })
    setInterval(() => {
      // Words that a stopped supervisor does not read must not pile up.
      if (!this.#isSending) this.#tell({ millrace: 'alive', pulse: pulse() })
    }, aliveEveryMs)
  }

  /** Says that a job is in hand alone, to which the death of the process is charged, or no longer. */
  alone(isAlone: boolean): void {
    this.#tell({ millrace: 'alone', isAlone })
  }

  /** It takes no more jobs by an order, and no other is to take its place. */
  dismissed(): void {
    this.#tell({ millrace: 'dismissed' })
  }

  recycling(): void {
    this.#tell({ millrace: 'recycling' })
  }

  /** It takes no more jobs because of an error, and ends when those in hand have. */
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
    // What cannot be sent is not missed: the loss of the supervisor is an event of its own.
    void this.#channel!.say(word).then(() => {
      this.#isSending = false
    })
  }
}
