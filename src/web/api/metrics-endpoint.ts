/** The endpoint of the metrics for Prometheus: those of the store, and those of this process. */

import { systemClock } from '../../core/platform/clock.js'
import { acceptedFormat, expositionTypes, type MetricSamples } from '../../measures/exposition.js'
import { addCounters, addVitals, TroubleCounters } from '../../measures/process-metrics.js'
import type { Mill } from '../../mill/mill.js'
import type { Access } from '../access.js'
import type { Asked } from '../asked.js'
import { WebRefusal } from '../failure.js'
import { readMill } from '../state/mill-reader.js'
import { MetricsPage, ProcessVitals } from './metrics-page.js'

/** The path of the metrics below the window. */
export const metricsPath = '/metrics'

/** Scrapes within this time share one reading of the store. */
const keptMs = 1_000

export class MetricsEndpoint {
  readonly #mill: Mill
  readonly #access: Access
  #page: MetricsPage | undefined
  #counters: TroubleCounters | undefined
  #vitals: ProcessVitals | undefined

  /** Nothing is counted or watched before the first scrape. */
  constructor(mill: Mill, access: Access) {
    this.#mill = mill
    this.#access = access
  }

  /** The host is checked before. Throws a refusal for a viewer who may not look. */
  async answer(asked: Asked): Promise<Response> {
    if (asked.request.method !== 'GET')
      throw new WebRefusal('method-not-allowed', 'this address takes GET.', { allow: 'GET' })
    this.#access.checkOrigin(asked)
    await this.#access.viewer(asked)
    this.#page ??= this.#begun()
    const format = acceptedFormat(asked.request.headers.get('accept'))
    return new Response(await this.#page.text(format), { headers: { 'content-type': expositionTypes[format] } })
  }

  close(): void {
    this.#counters?.close()
    this.#vitals?.stop()
  }

  #begun(): MetricsPage {
    const counters = new TroubleCounters(this.#mill)
    const vitals = new ProcessVitals(systemClock.mono)
    this.#counters = counters
    this.#vitals = vitals
    const addOwn = (samples: MetricSamples) => {
      addVitals(samples, process.pid, vitals.read())
      addCounters(samples, counters.counts)
    }
    return new MetricsPage(() => readMill(this.#mill), addOwn, keptMs)
  }
}
