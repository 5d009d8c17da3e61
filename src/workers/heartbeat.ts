/**
 * The heartbeat of a worker: tells the registry that the worker lives and what it serves, and receives operators'
 * orders.
 */

import type { VitalSigns } from '../runtime/process/vital-signs.js'
import type { Store } from '../stores/contract/store.js'
import type { WorkerRecord, WorkerSignal } from '../stores/contract/worker-registry.js'

interface HeartbeatParts {
  readonly store: Pick<Store, 'workers' | 'traits' | 'idle'>
  readonly worker: Omit<WorkerRecord, 'running' | 'state' | 'rssBytes' | 'loopDelayMs'>
  /** The number of slots in use now. */
  readonly running: () => number
  readonly signs: VitalSigns
  readonly state: () => NonNullable<WorkerRecord['state']>
  /** Called with each signal, again with every beat. */
  readonly signalled: (signal: WorkerSignal) => void
  /** How long the registry remembers a dead worker, in ms. */
  readonly ttlMs: number
  readonly mono: () => number
  /** Called when the store took a beat, with the time on the monotonic clock. */
  readonly beaten: (at: number) => void
}

/** The time between beats, in ms. */
export const registryBeatMs = 5_000
/** A worker that holds nothing beats less often if a beat costs a trip. */
const idleBeatMs = 20_000

export class Heartbeat {
  readonly #parts: HeartbeatParts
  #wasRunning = 0
  #toldState: WorkerRecord['state']
  #beatenAt = Number.NEGATIVE_INFINITY

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
  }

  /** Called every `registryBeatMs`. */
  async beat(): Promise<void> {
    const { store, worker, signs, ttlMs, mono, beaten, signalled } = this.#parts
    const running = this.#parts.running()
    const state = this.#parts.state()
    const isIdle = running === 0 && this.#wasRunning === 0 && state === this.#toldState
    if (store.traits.remote && isIdle && mono() < this.#beatenAt + idleBeatMs - registryBeatMs / 2) return
    if (isIdle && store.idle?.isAsleep()) {
      // Its silence is no outage.
      beaten(mono())
      return
    }
    this.#wasRunning = running
    const signal = await store.workers?.beat({ ...worker, running, state, ...signs.read() }, ttlMs)
    this.#toldState = state
    this.#beatenAt = mono()
    beaten(this.#beatenAt)
    if (signal !== undefined) signalled(signal)
  }
}
