/** The vital signs of a worker: the memory of its process, and the delay of its event loop. */

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'

/** The sampling interval of the loop: long enough to cost nothing, and 100 samples between two beats. */
const resolutionMs = 50
const nsPerMs = 1_000_000

export class VitalSigns {
  #loop: IntervalHistogram | undefined

  /** The present values; the loop's delay is since the last call. The first call starts the measurement. */
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
