/**
 * The process reporter: the measures of a worker process and its readings of the store, for a supervisor that serves
 * metrics.
 */

import { systemClock } from '../../core/platform/clock.js'
import type { MillReading } from '../../measures/mill-reading.js'
import type { ProcessMeasures } from '../../measures/process-measures.js'
import { TroubleTally } from '../../measures/trouble-tally.js'
import type { Mill } from '../../mill/mill.js'
import { readMill } from '../../web/metrics/mill-reader.js'
import { ProcessVitals } from '../../web/metrics/process-vitals.js'

export class ProcessReporter {
  readonly #mill: Mill
  readonly #tally: TroubleTally
  readonly #vitals = new ProcessVitals(systemClock.mono)

  /** Counts and watches from now on, until the process ends. */
  constructor(mill: Mill) {
    this.#mill = mill
    this.#tally = new TroubleTally(mill)
  }

  get measures(): ProcessMeasures {
    return { ...this.#vitals.read(), ...this.#tally.counts }
  }

  /** Rejects if the store cannot be reached. */
  read(): Promise<MillReading> {
    return readMill(this.#mill)
  }
}
