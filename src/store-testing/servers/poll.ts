/** A poll: asks a server again and again until the answer fits, for states without an event to await. */

import { setTimeout as delay } from 'node:timers/promises'

interface PollOptions {
  /** The awaited state, for the error. */
  readonly what: string
  readonly withinMs: number
  /** Ms between an answer and the next question. Default 20. */
  readonly everyMs?: number
}

/**
 * The first answer that is not undefined. A question that throws is asked again.
 *
 * Throws if there is none in time, with the last error as its cause.
 */
export async function poll<T>(ask: () => Promise<T | undefined>, options: PollOptions): Promise<T> {
  const { what, withinMs, everyMs = 20 } = options
  const startedAt = performance.now()
  let cause: unknown
  do {
    try {
      const answer = await ask()
      if (answer !== undefined) return answer
      cause = undefined
    } catch (error) {
      cause = error
    }
    await delay(everyMs)
  } while (performance.now() - startedAt < withinMs)
  throw new Error(`${what}: not so after ${withinMs} ms`, { cause })
}
