/** The line to the worker: what the process of an isolated job says to its worker, and hears from it. */

import type { Socket } from 'node:net'
import { LineChannel } from '../../runtime/line-channel.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import { type ChildMessage, isWorkerMessage } from './child-messages.js'

/** A worker that blocks hears the end of the job when it goes on. */
const hearingMs = 5_000

export class WorkerLine {
  readonly #channel: LineChannel
  #isHeard = false
  #heard: () => void = () => {}

  /** `stopped`: called when the worker stops and its grace is over. */
  constructor(socket: Socket, stopped: () => void) {
    this.#channel = new LineChannel(socket, (word) => {
      if (!isWorkerMessage(word)) return
      if (word.word === 'stop') stopped()
      else {
        this.#isHeard = true
        this.#heard()
      }
    })
  }

  /**
   * Resolves with whether the worker has it, or else is no longer there. How the job ended is with the worker once it says so:
   * what still lies in the pipe of a worker that leaves is read by nobody.
   */
  async tell(word: ChildMessage): Promise<boolean> {
    const isSent = await this.#channel.say(word)
    if (!isSent || word.word !== 'settled') return isSent
    const heard = new Promise<void>((resolve) => {
      this.#heard = resolve
    })
    if (this.#isHeard) return true
    const isAnswered = await endsWithin(hearingMs, Promise.race([heard, this.#channel.closed]))
    return this.#isHeard || !isAnswered
  }
}
