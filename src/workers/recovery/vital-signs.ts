/** The vital signs of a worker: what its process takes of memory, and how late its event loop is. */

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'

/** How often the loop is looked at: seldom enough to cost nothing, and 100 times between two beats. */
const resolutionMs = 50
const nsPerMs = 1_000_000

export class VitalSigns {
  #loop: IntervalHistogram | undefined

  /** As they are now, the loop since the last call; the first call begins to watch it. */
  read(): Pick<WorkerRecord, 'rssBytes' | 'loopDelayMs'> {
    const rssBytes = process.memoryUsage.rss()
    if (this.#loop === undefined) {
      this.#loop = monitorEventLoopDelay({ resolution: resolutionMs })
      this.#loop.enable()
      return { rssBytes }
    }
    const lateMs = this.#loop.count === 0 ? 0 : this.#loop.percentile(99) / nsPerMs - resolutionMs
    this.#loop.reset()
    return { rssBytes, loopDelayMs: Math.max(0, Math.round(lateMs * 10) / 10) }
  }

  stop(): void {
    this.#loop?.disable()
    this.#loop = undefined
  }
}
