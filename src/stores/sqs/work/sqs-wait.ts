/** A wait on SQS: resting claimers share the long polls of their queues. */

import type { Clock } from '../../../core/platform/clock.js'
import { timerMs } from '../../../core/platform/timer.js'
import type { SqsPolling } from '../client/sqs-address.js'
import { polledNext } from '../receive/empty-queue.js'
import type { Receiver } from '../receive/receiver.js'

/** A resting claimer. */
interface Resting {
  /** By queue; the first is polled first. */
  readonly receivers: ReadonlyMap<string, Receiver>
  readonly wake: (queues: string[]) => void
  readonly fail: (error: unknown) => void
}

export class SqsWait {
  readonly #polling: SqsPolling
  readonly #clock: Clock
  readonly #closing = new AbortController()
  readonly #resting = new Set<Resting>()

  constructor(polling: SqsPolling, clock: Clock) {
    this.#polling = polling
    this.#clock = clock
  }

  /** Like `Store.wait`. */
  async forQueues(receivers: ReadonlyMap<string, Receiver>, forMs: number, signal: AbortSignal): Promise<string[]> {
    // A queue that was never asked, or has heard of a job, is looked at first: polls take turns.
    await Promise.all([...receivers.values()].filter(({ asked }) => asked.empties === 0).map((one) => one.look()))
    const found = [...receivers].filter(([, { hasFree }]) => hasFree).map(([name]) => name)
    if (signal.aborted || this.#closing.signal.aborted) return []
    if (found.length > 0) return found
    return new Promise((resolve, reject) => {
      const over = () => resting.wake([])
      const leave = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        this.#resting.delete(resting)
      }
      const timer = setTimeout(over, timerMs(forMs))
      const resting: Resting = {
        receivers,
        wake: (woken) => {
          leave()
          resolve(woken)
        },
        fail: (error) => {
          leave()
          reject(error)
        },
      }
      signal.addEventListener('abort', over)
      this.#resting.add(resting)
      this.#poll(resting)
    })
  }

  /** The queue has a job for a claimer that rests on it. */
  heard(queue: string): void {
    this.#wakeFor(queue)
  }

  /** Breaks the polls off. Messages that SQS gives to one of them then are visible again when its lease ends. */
  close(): void {
    this.#closing.abort()
    for (const { wake } of [...this.#resting]) wake([])
  }

  #poll(resting: Resting): void {
    const { receivers } = resting
    const names = [...receivers.keys()]
    // A poll outlasts the rest that began it, and is paid for: the next claimer, with other queues first, waits for it
    // too.
    const polled = names.find((name) => receivers.get(name)!.isPolling)
    const next = polled ?? polledNext(names, (name) => receivers.get(name)!.asked, this.#clock.mono())
    for (const name of this.#polling === 'each' ? names : [next]) this.#follow(resting, name)
  }

  #follow(resting: Resting, name: string): void {
    const receiver = resting.receivers.get(name)!
    const { signal } = this.#closing
    receiver.poll(signal).then(
      () => {
        if (receiver.hasFree) this.#wakeFor(name)
        // Another may have been woken.
        if (!this.#resting.has(resting) || signal.aborted) return
        if (this.#polling === 'each') this.#follow(resting, name)
        else this.#poll(resting)
      },
      (error: unknown) => {
        if (!signal.aborted && this.#resting.has(resting)) resting.fail(error)
      },
    )
  }

  /** One is enough for the messages that have come. */
  #wakeFor(queue: string): void {
    const first = [...this.#resting].find(({ receivers }) => receivers.has(queue))
    first?.wake([queue])
  }
}
