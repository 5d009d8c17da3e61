/** The ids of a queue's jobs whose results somebody waits for, each with those who wait and until when. */

import { longestExpectMs } from '../../rules/bounds.js'

export class ExpectedIds {
  readonly #untilById = new Map<string, Map<string, number>>()

  /** `by` waits until that instant; undefined: no longer. */
  set(id: string, by: string, until: number | undefined): void {
    const waiting = this.#untilById.get(id) ?? new Map<string, number>()
    if (until === undefined) waiting.delete(by)
    else waiting.set(by, until)
    if (waiting.size > 0) this.#untilById.set(id, waiting)
    else this.#untilById.delete(id)
  }

  /**
   * Until when somebody waits for it; -Infinity: nobody does. An instant that is further away than anybody may wait is from
   * before the clock was set back.
   */
  until(id: string, now: number): number {
    const all = [...(this.#untilById.get(id)?.values() ?? [])]
    return Math.max(Number.NEGATIVE_INFINITY, ...all.filter((until) => until <= now + longestExpectMs))
  }

  /** Forgets those whose time is over. */
  expire(now: number): void {
    for (const [id, waiting] of this.#untilById)
      for (const [by, until] of waiting) if (until <= now) this.set(id, by, undefined)
  }
}
