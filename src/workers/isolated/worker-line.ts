/** The line to the worker: messages between the process of an isolated job and its worker. */

import type { Socket } from 'node:net'
import { LineChannel } from '../../runtime/line-channel.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import { type ChildMessage, isWorkerMessage } from './child-messages.js'

/** A blocked worker hears the end of the job once it goes on. */
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
   * Resolves with whether the worker has the message, or with false once it is gone. The end of a job counts as heard
   * only once the worker says so: nobody reads the rest of a pipe whose worker leaves.
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
