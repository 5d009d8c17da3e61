/** The trouble tally: counts failed attempts by reason, and events that report a disorder. */

import { isMillraceError } from '../core/errors.js'
import type { EventName, Listener } from '../core/events.js'
import { mostFailureRows, type ProcessCounts } from './process-measures.js'

/** The counted events. They are rare, so counting costs next to nothing. */
export const troubleEvents = [
  'job.slow',
  'settle.refused',
  'lease.lost',
  'process.failed',
  'permit.wasted',
  'start.late',
  'result.dropped',
  'slot.retired',
  'loop.blocked',
  'queue.damaged',
  'schedule.missed',
  'schedule.refused',
  'worker.failed',
  'store.failed',
  'hook.failed',
] as const satisfies readonly EventName[]

interface TroubledMill {
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void
}

/** The reason of an error that is not one of Millrace's. */
const ownReason = 'error'

export class TroubleTally {
  /** By queue and reason. */
  readonly #failures = new Map<string, [queue: string, reason: string, count: number]>()
  readonly #events = new Map<string, number>(troubleEvents.map((name) => [name, 0]))
  readonly #stop: readonly (() => void)[]

  /** Counts from now on. */
  constructor(mill: TroubledMill) {
    const count = (name: string) => {
      this.#events.set(name, this.#events.get(name)! + 1)
    }
    this.#stop = [
      mill.on('job.failed', ({ queue, error }) => this.#failed(queue, error)),
      ...troubleEvents.map((name) => mill.on(name, () => count(name))),
    ]
  }

  get counts(): ProcessCounts {
    return { failures: [...this.#failures.values()], events: Object.fromEntries(this.#events) }
  }

  close(): void {
    for (const stop of this.#stop) stop()
  }

  #failed(queue: string, error: unknown): void {
    const reason = isMillraceError(error) ? error.code : ownReason
    const key = JSON.stringify([queue, reason])
    const row = this.#failures.get(key)
    if (row !== undefined) row[2] += 1
    else if (this.#failures.size < mostFailureRows) this.#failures.set(key, [queue, reason, 1])
  }
}
