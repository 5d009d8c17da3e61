/** The vitals of this process: its memory, the delay of its event loop, and its uptime. */

import { VitalSigns } from '../../runtime/process/vital-signs.js'

/** The span of the reported loop delay: longer than the time between two scrapes, or two reports. */
const rememberedMs = 15_000

export class ProcessVitals {
  readonly #signs = new VitalSigns()
  readonly #mono: () => number
  #delays: readonly { readonly at: number; readonly ms: number }[] = []

  /** Watches the event loop from now on. */
  constructor(mono: () => number) {
    this.#mono = mono
    this.#signs.read()
  }

  read() {
    const now = this.#mono()
    const { loopDelayMs = 0 } = this.#signs.read()
    this.#delays = [...this.#delays.filter(({ at }) => now - at < rememberedMs), { at: now, ms: loopDelayMs }]
    const { rss: rssBytes, heapUsed: heapBytes } = process.memoryUsage()
    return {
      ...{ rssBytes, heapBytes, upMs: process.uptime() * 1_000 },
      loopDelayMs: Math.max(...this.#delays.map(({ ms }) => ms)),
    }
  }

  stop(): void {
    this.#signs.stop()
  }
}
