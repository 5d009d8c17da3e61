/** A sample of this process: what it holds. Its garbage is collected first where it was started with `--expose-gc`. */

import { readdirSync } from 'node:fs'

export interface ProcessSample {
  readonly heapMb: number
  readonly rssMb: number
  readonly descriptors: number
  /** What keeps the loop alive: timers, ports, watches. */
  readonly resources: number
}

const bytesPerMb = 1_048_576

export function processSample(): ProcessSample {
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  return {
    heapMb: heapUsed / bytesPerMb,
    rssMb: rss / bytesPerMb,
    descriptors: readdirSync('/proc/self/fd').length,
    resources: process.getActiveResourcesInfo().length,
  }
}
