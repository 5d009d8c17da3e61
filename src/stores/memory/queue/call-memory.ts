/** The remembered calls of a queue: a call sent again gets its first answer and is not repeated. */

import type { Enqueued } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'

interface KnownCall {
  readonly id: string
  readonly at: number
  readonly answers: Enqueued[]
}

export class CallMemory {
  readonly #calls = new Map<string, KnownCall>()

  /** The first answer to the call, while it is remembered. */
  answersTo(id: string, now: number): Enqueued[] | undefined {
    const call = this.#calls.get(id)
    return call !== undefined && call.at + callMemoryMs > now ? [...call.answers] : undefined
  }

  remember(id: string, answers: Enqueued[], now: number): void {
    this.#calls.delete(id)
    this.#calls.set(id, { id, at: now, answers })
    for (const call of this.#calls.values()) {
      if (this.#calls.size <= callMemoryCount && call.at + callMemoryMs > now) break
      this.#calls.delete(call.id)
    }
  }

  list(now: number): KnownCall[] {
    return [...this.#calls.values()].filter((call) => call.at + callMemoryMs > now)
  }

  /** Follows a clock that was set back. */
  turnBack(byMs: number): void {
    for (const [id, call] of this.#calls) this.#calls.set(id, { ...call, at: call.at - byMs })
  }
}
