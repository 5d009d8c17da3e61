/** The remembered calls of a queue: a call sent again gets its first answer and is not repeated. */

import { Roster } from '../../../core/values/roster.js'
import type { Enqueued } from '../../contract/new-job.js'
import { callMemoryCount, callMemoryMs } from '../../rules/bounds.js'

interface KnownCall {
  readonly id: string
  readonly at: number
  readonly answers: Enqueued[]
}

export class CallMemory {
  readonly #calls = new Roster<string, KnownCall>()

  /** The first answer to the call, while it is remembered. */
  answersTo(id: string, now: number): Enqueued[] | undefined {
    const call = this.#calls.get(id)
    return call !== undefined && call.at + callMemoryMs > now ? [...call.answers] : undefined
  }

  remember(id: string, answers: Enqueued[], now: number): void {
    this.#calls.delete(id)
    this.#calls.set(id, { id, at: now, answers })
    for (let first = this.#calls.firstKey(); first !== undefined; first = this.#calls.firstKey()) {
      if (this.#calls.size <= callMemoryCount && this.#calls.get(first)!.at + callMemoryMs > now) break
      this.#calls.delete(first)
    }
  }

  list(now: number): KnownCall[] {
    return [...this.#calls.values()].filter((call) => call.at + callMemoryMs > now)
  }

  /** Follows a clock that was set back. */
  turnBack(byMs: number): void {
    for (const [id, call] of [...this.#calls]) this.#calls.set(id, { ...call, at: call.at - byMs })
  }
}
