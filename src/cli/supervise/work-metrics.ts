/**
 * The metrics of `millrace work`: its processes, their counts, and a reading of the store by one of them. The
 * supervisor opens no store itself.
 */

import { systemClock } from '../../core/platform/clock.js'
import type { ExpositionFormat, MetricSamples } from '../../measures/exposition.js'
import {
  addCounters,
  addedProcessCounters,
  addVitals,
  noProcessCounters,
  type ProcessCounters,
} from '../../measures/process-metrics.js'
import { MetricsPage, ProcessVitals } from '../../web/api/metrics-page.js'
import type { ProcessReport } from './forked-worker.js'
import type { Supervisor } from './supervisor.js'

/** The port has no access control, so a reading is reused for this long, however many requests come. */
const keptMs = 5_000

const states = [
  'starting',
  'running',
  'recycling',
  'stopping',
  'stopped',
  'failed',
] as const satisfies readonly ProcessReport['state'][]

export class WorkMetrics {
  /** For the settings of each supervisor. */
  readonly hearing = {
    ended: (report: ProcessReport, isDeath: boolean) => this.#ended(report, isDeath),
  }
  readonly #supervisor: () => Pick<Supervisor, 'reports' | 'measure'>
  readonly #page: MetricsPage
  readonly #vitals = new ProcessVitals(systemClock.mono)
  /** The counts of processes that have ended. */
  #counts: ProcessCounters = noProcessCounters
  #deaths = 0

  /** `supervisor`: the current one; `--watch` starts others. */
  constructor(supervisor: () => Pick<Supervisor, 'reports' | 'measure'>) {
    this.#supervisor = supervisor
    this.#page = new MetricsPage(
      () => supervisor().measure(),
      (samples) => this.#addOwn(samples),
      keptMs,
    )
  }

  /** Never rejects. */
  text(format: ExpositionFormat): Promise<string> {
    return this.#page.text(format)
  }

  #ended({ pulse }: ProcessReport, isDeath: boolean): void {
    if (pulse?.measures !== undefined) this.#counts = addedProcessCounters(this.#counts, pulse.measures)
    if (isDeath) this.#deaths += 1
  }

  #addOwn(samples: MetricSamples): void {
    const reports = this.#supervisor().reports()
    for (const state of states)
      samples.add('millrace_work_processes', { state }, reports.filter((report) => report.state === state).length)
    samples.add('millrace_work_deaths_total', {}, this.#deaths)
    addVitals(samples, process.pid, this.#vitals.read())
    let counts = this.#counts
    for (const { pid, pulse } of reports) {
      if (pulse?.measures === undefined) continue
      addVitals(samples, pid, pulse.measures)
      counts = addedProcessCounters(counts, pulse.measures)
    }
    addCounters(samples, counts)
  }
}
