/**
 * The process reporter: the metrics of a worker process, and of the store as it reads them, for a supervisor that serves
 * metrics.
 */

import { systemClock } from '../../core/platform/clock.js'
import type { MillMetrics } from '../../measures/mill-metrics.js'
import { type ProcessMetrics, TroubleCounters } from '../../measures/process-metrics.js'
import { TaskCounters } from '../../measures/task-counters.js'
import type { Mill } from '../../mill/mill.js'
import { ProcessVitals } from '../../web/api/metrics-page.js'
import { readMill } from '../../web/state/mill-reader.js'

export class ProcessReporter {
  readonly #mill: Mill
  readonly #counters: TroubleCounters
  readonly #tasks: TaskCounters
  readonly #vitals = new ProcessVitals(systemClock.mono)

  /** Counts and watches from now on, until the process ends. */
  constructor(mill: Mill) {
    this.#mill = mill
    this.#counters = new TroubleCounters(mill)
    this.#tasks = TaskCounters.of(mill)
  }

  get measures(): ProcessMetrics {
    return { ...this.#vitals.read(), ...this.#counters.counts, tasks: this.#tasks.rows }
  }

  /** Rejects if the store cannot be reached. */
  read(): Promise<MillMetrics> {
    return readMill(this.#mill)
  }
}
