/** The metrics of a mill, as its window gives them to Prometheus: those of the store, and those of this process. */

import { systemClock } from '../../core/platform/clock.js'
import { acceptedFormat } from '../../measures/accepted-format.js'
import { expositionTypes } from '../../measures/exposition.js'
import type { MetricSheet } from '../../measures/metric-sheet.js'
import { tellCounts, tellVitals } from '../../measures/process-measures.js'
import { TroubleTally } from '../../measures/trouble-tally.js'
import type { Mill } from '../../mill/mill.js'
import type { Access } from '../access/access.js'
import type { Asked } from '../asked.js'
import { WebRefusal } from '../refusal.js'
import { MetricsPage } from './metrics-page.js'
import { readMill } from './mill-reader.js'
import { ProcessVitals } from './process-vitals.js'

/** The path of the metrics below the window. */
export const metricsPath = '/metrics'

/** Scrapes within this time share one reading of the store. */
const keptMs = 1_000

export class MillMetrics {
  readonly #mill: Mill
  readonly #access: Access
  #page: MetricsPage | undefined
  #tally: TroubleTally | undefined
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
    this.#tally?.close()
    this.#vitals?.stop()
  }

  #begun(): MetricsPage {
    const tally = new TroubleTally(this.#mill)
    const vitals = new ProcessVitals(systemClock.mono)
    this.#tally = tally
    this.#vitals = vitals
    const tellOwn = (sheet: MetricSheet) => {
      tellVitals(sheet, process.pid, vitals.read())
      tellCounts(sheet, tally.counts)
    }
    return new MetricsPage({ read: () => readMill(this.#mill), tellOwn, mono: systemClock.mono, keptMs })
  }
}
