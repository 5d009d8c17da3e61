/** The heartbeat of a worker: it says in the registry that it lives, and what it serves, for as long as it runs, and hears what is wanted of it. */

import type { Store } from '../../stores/contract/store.js'
import type { WorkerOrder, WorkerRecord } from '../../stores/contract/worker-registry.js'
import type { VitalSigns } from './vital-signs.js'

interface HeartbeatParts {
  readonly store: Pick<Store, 'workers' | 'traits'>
  readonly worker: Omit<WorkerRecord, 'running' | 'state' | 'rssBytes' | 'loopDelayMs'>
  /** Slots in use at this moment. */
  readonly running: () => number
  readonly signs: VitalSigns
  readonly state: () => NonNullable<WorkerRecord['state']>
  /** Hears each order, again with every beat. */
  readonly ordered: (order: WorkerOrder) => void
  /** For how long the registry knows a worker that has died. */
  readonly ttlMs: number
  readonly mono: () => number
  /** Hears when the store took a beat, on the monotonic clock. */
  readonly beaten: (at: number) => void
}

/** How often a worker says that it lives. */
export const registryBeatMs = 5_000
/** One with nothing in hand says so less often, where saying so costs a trip. */
const idleBeatMs = 20_000

export class Heartbeat {
  readonly #parts: HeartbeatParts
  #wasRunning = 0
  #toldState: WorkerRecord['state']
  #beatenAt = Number.NEGATIVE_INFINITY

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
  }

  /** The work of a `Service`, every `registryBeatMs`. */
  async beat(): Promise<void> {
    const { store, worker, signs, ttlMs, mono, beaten, ordered } = this.#parts
    const running = this.#parts.running()
    const state = this.#parts.state()
    const isIdle = running === 0 && this.#wasRunning === 0 && state === this.#toldState
    if (store.traits.remote && isIdle && mono() < this.#beatenAt + idleBeatMs - registryBeatMs / 2) return
    this.#wasRunning = running
    const order = await store.workers?.beat({ ...worker, running, state, ...signs.read() }, ttlMs)
    this.#toldState = state
    this.#beatenAt = mono()
    beaten(this.#beatenAt)
    if (order !== undefined) ordered(order)
  }
}
