/** The supervisor link: how a worker process speaks with its supervisor. Without one it says nothing to nobody. */

import { isWord, type ProcessWord, pulseOf, type WorkerStatus } from './process-word.js'

const aliveEveryMs = 1_000

export class SupervisorLink {
  #sending = false

  /** `dump` is called when the supervisor asks for the state; it is told when that is done. */
  constructor(dump: () => void) {
    process.on('message', (message) => {
      if (!isWord(message) || message.millrace !== 'dump') return
      dump()
      this.#tell({ millrace: 'dumped' })
    })
  }

  /** Says that the worker takes jobs, and from then on each second that its event loop turns. */
  ready(status: () => WorkerStatus): void {
    this.#tell({ millrace: 'ready', pulse: pulseOf(status()) })
    setInterval(() => {
      // Words that a stopped supervisor does not read must not pile up.
      if (!this.#sending) this.#tell({ millrace: 'alive', pulse: pulseOf(status()) })
    }, aliveEveryMs)
  }

  recycling(): void {
    this.#tell({ millrace: 'recycling' })
  }

  /** It takes no more jobs because of an error, and ends when those in hand have. */
  failing(): void {
    this.#tell({ millrace: 'failing' })
  }

  #tell(word: ProcessWord): void {
    if (!process.connected) return
    this.#sending = true
    // What cannot be sent is not missed: the loss of the supervisor is an event of its own.
    process.send!(word, undefined, undefined, () => {
      this.#sending = false
    })
  }
}
