/**
 * The metrics page: the text that answers a scrape. All scrapes within `keptMs` share one reading of the store. If the
 * reading fails or takes too long, the text says so, and holds the metrics that need no store. The supervisor of
 * `millrace work` has such a page too, and no window.
 */

import { packageVersion } from '../../core/package-files.js'
import { systemClock } from '../../core/platform/clock.js'
import { type ExpositionFormat, expositionText, MetricSamples, seconds } from '../../measures/exposition.js'
import { HistoryCounters } from '../../measures/history-counters.js'
import { addQueues, addThrottles, addWorkers, type MillMetrics } from '../../measures/mill-metrics.js'
import { VitalSigns } from '../../runtime/process/vital-signs.js'
import { endsWithin } from '../../runtime/with-timeout.js'

/** The latest reading. */
interface LatestReading {
  /** Undefined if it failed. */
  readonly found: Promise<TimedReading | undefined>
  readonly begunAt: number
  isOver: boolean
}

interface TimedReading {
  readonly reading: MillMetrics
  readonly tookMs: number
}

/** A scrape waits no longer: Prometheus gives up after 10 s by default. */
const patienceMs = 4_000
/** A reading that has not ended by then is taken for lost. */
const lostMs = 60_000
const parts = ['store', 'queue', 'throttle', 'workers', 'history'] as const

export class MetricsPage {
  readonly #readStore: () => Promise<MillMetrics>
  readonly #addOwn: (samples: MetricSamples) => void
  readonly #keptMs: number
  readonly #counters = new HistoryCounters()
  readonly #errors = new Map<string, number>(parts.map((part) => [part, 0]))
  #latest: LatestReading | undefined

  /**
   * `read` reads the store, and rejects if it cannot be reached. `addOwn` adds the metrics that need no store. `keptMs`: how
   * long a reading serves all scrapes.
   */
  constructor(read: () => Promise<MillMetrics>, addOwn: (samples: MetricSamples) => void, keptMs: number) {
    this.#readStore = read
    this.#addOwn = addOwn
    this.#keptMs = keptMs
  }

  /** Never rejects, and takes at most 4 s if the store does not answer. */
  async text(format: ExpositionFormat): Promise<string> {
    const found = await this.#found()
    const samples = new MetricSamples()
    samples.add('millrace_up', {}, found === undefined ? 0 : 1)
    for (const [part, count] of this.#errors) samples.add('millrace_scrape_errors_total', { part }, count)
    this.#addOwn(samples)
    if (found !== undefined) this.#tellFound(samples, found)
    return expositionText(samples, format)
  }

  #tellFound(samples: MetricSamples, { reading, tookMs }: TimedReading): void {
    samples.add('millrace_build_info', { version: packageVersion() ?? '', store: reading.store }, 1)
    samples.add('millrace_scrape_duration_seconds', {}, seconds(tookMs))
    addQueues(samples, reading, (queue) => this.#counters.of(queue))
    addThrottles(samples, reading)
    addWorkers(samples, reading)
  }

  /** Undefined if the store could not be read in time. */
  async #found(): Promise<TimedReading | undefined> {
    const now = systemClock.mono()
    if (this.#latest === undefined || this.#isOld(this.#latest, now)) this.#latest = this.#begun(now)
    const { found } = this.#latest
    if (await endsWithin(patienceMs, found)) return found
    this.#count('store')
    return undefined
  }

  /** While a reading hangs no other is begun, so that scrapes do not pile up in the store. */
  #isOld({ begunAt, isOver }: LatestReading, now: number): boolean {
    return now - begunAt >= (isOver ? this.#keptMs : lostMs)
  }

  #begun(begunAt: number): LatestReading {
    const reading = this.#read(begunAt).catch(() => void this.#count('store'))
    const latest: LatestReading = { found: reading, begunAt, isOver: false }
    void reading.then(() => {
      latest.isOver = true
    })
    return latest
  }

  async #read(begunAt: number): Promise<TimedReading> {
    const reading = await this.#readStore()
    if (reading.hasHistory && !reading.unread.includes('history')) this.#counters.add(reading.queues)
    for (const part of reading.unread) this.#count(part)
    return { reading, tookMs: systemClock.mono() - begunAt }
  }

  #count(part: string): void {
    this.#errors.set(part, this.#errors.get(part)! + 1)
  }
}

/** The span of the reported loop delay: longer than the time between two scrapes, or two reports. */
const rememberedMs = 15_000

/** The vitals of this process: its memory, the delay of its event loop, and its uptime. */
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
