/** The stillness of a process: for how long none of its threads has run, as when it is stopped or frozen. */

import { readdirSync, readFileSync } from 'node:fs'
import { switchesIn } from '../../core/platform/proc-text.js'

/** A look that comes later than this was delayed: this process itself has stood still. */
const longestGapMs = 1_000

export class Stillness {
  #ms = 0
  #lookedAt: number
  #switches: number | undefined

  /** `now`: monotonic, here and below. */
  constructor(now: number) {
    this.#lookedAt = now
  }

  /**
   * Ms in which it has stood still, counting only time in which this process was running to see it. `switches`: the
   * context switches of its threads so far; undefined if unknown, and then nothing is concluded. Call it about twice a
   * second.
   */
  look(now: number, switches: number | undefined): number {
    const seenMs = Math.min(now - this.#lookedAt, longestGapMs)
    const isStill = switches !== undefined && switches === this.#switches
    this.#ms = isStill ? this.#ms + seenMs : 0
    this.#lookedAt = now
    this.#switches = switches
    return this.#ms
  }
}

/** How often the threads of a process have begun or ceased to run so far; undefined if the system does not say. */
export function switchesOf(pid: number): number | undefined {
  try {
    let switches = 0
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const ofThread = switchesIn(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'))
      if (ofThread === undefined) return undefined
      switches += ofThread
    }
    return switches
  } catch {
    // It has ended, one of its threads has this moment, or the system has no such files.
    return undefined
  }
}
