/**
 * The recoverer: finds workers of this machine whose process is dead and ends their leases, so that their jobs need not
 * wait for the end of the leases. Every worker runs one; the store makes sure that each lease ends once.
 */

import { timerMs } from '../core/platform/timer.js'
import type { WorkerSurroundings } from '../core/surroundings.js'
import type { ProcessIdentity } from '../runtime/process/process-identity.js'
import { isDead, isNeighbour } from '../runtime/process/process-peers.js'
import { processSeenDeaths } from '../runtime/process/seen-deaths.js'
import type { Store } from '../stores/contract/store.js'
import type { HeldClaim, WorkerRecord, WorkerRegistry } from '../stores/contract/worker-registry.js'
import { stepLimit } from '../stores/rules/bounds.js'
import type { FoundEnds } from './found-ends.js'
import { isAlive } from './isolated/adoption.js'
import { endRemains } from './isolated/job-group.js'

/** A dead worker is found within about this time. The more workers look, the less often each does. */
const foundWithinMs = 1_000
const workersPerSecond = 10
/** How long a list that costs a trip is reused: it shows deaths, but not new workers. */
const listedForMs = 5_000
/** The same while nobody else was on this machine. */
const aloneForMs = 20_000

export class Recoverer {
  readonly #surroundings: WorkerSurroundings
  readonly #workers: WorkerRegistry
  readonly #store: Pick<Store, 'traits' | 'idle'>
  readonly #identity: ProcessIdentity
  readonly #ends: Pick<FoundEnds, 'tell'>
  readonly #found: (queues: readonly string[]) => void
  #timer: NodeJS.Timeout | undefined
  #neighbours: readonly WorkerRecord[] = []
  /** Claims that dead workers have left running, by worker id. */
  readonly #survivors = new Map<string, readonly HeldClaim[]>()
  #listedAt = Number.NEGATIVE_INFINITY
  #isStopped = false

  /**
   * `store`: says whether the list of workers costs a trip. `found` is called with the queues whose jobs came back: they
   * are suspect, so a worker must claim to hear of them.
   */
  constructor(
    surroundings: WorkerSurroundings,
    workers: WorkerRegistry,
    store: Pick<Store, 'traits' | 'idle'>,
    identity: ProcessIdentity,
    ends: Pick<FoundEnds, 'tell'>,
    found: (queues: readonly string[]) => void,
  ) {
    this.#surroundings = surroundings
    this.#workers = workers
    this.#store = store
    this.#identity = identity
    this.#ends = ends
    this.#found = found
  }

  /** Looks now, and then from time to time. */
  start(): void {
    void this.#take()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** One look; then sets the time of the next. Never rejects. */
  async #take(): Promise<void> {
    let nextMs = foundWithinMs
    try {
      nextMs = Math.max(foundWithinMs, (await this.#look()) * (1_000 / workersPerSecond))
    } catch (error) {
      this.#surroundings.events.emit('store.failed', { call: 'workers.list', error, retryMs: nextMs })
    }
    if (this.#isStopped) return
    // Spread out, so that workers do not all look at once.
    this.#timer = setTimeout(
      () => void this.#take(),
      timerMs(nextMs * (0.75 + this.#surroundings.random() / 4)),
    ).unref()
  }

  /** Resolves with the number of neighbours looked at. */
  async #look(): Promise<number> {
    await this.#list()
    for (const worker of this.#neighbours) {
      if (this.#isStopped || !isDead(worker) || this.#haveSurvived(worker.id)) continue
      await this.#bury(worker)
      if (!this.#survivors.has(worker.id)) this.#neighbours = this.#neighbours.filter((one) => one !== worker)
    }
    return this.#neighbours.length
  }

  async #list(): Promise<void> {
    const { clock } = this.#surroundings
    if (this.#store.idle?.isAsleep()) return
    const goodForMs = this.#store.traits.remote ? (this.#neighbours.length > 1 ? listedForMs : aloneForMs) : 0
    if (clock.mono() < this.#listedAt + goodForMs) return
    this.#neighbours = (await this.#workers.list()).filter((worker) => isNeighbour(worker, this.#identity))
    this.#listedAt = clock.mono()
  }

  /** Whether all jobs that it left running, by the last look, may still run. */
  #haveSurvived(worker: string): boolean {
    const survivors = this.#survivors.get(worker)
    return survivors?.every((claim) => mayLive(claim, this.#identity)) ?? false
  }

  /** Ends its leases, except for jobs whose own processes may live: their leases decide. */
  async #bury({ id: worker, pid }: WorkerRecord): Promise<void> {
    const workers = this.#workers
    this.#survivors.delete(worker)
    for (let left = 1; left > 0; ) {
      const claims = await workers.held(worker)
      const survivors = claims.filter((claim) => mayLive(claim, this.#identity))
      if (survivors.length > 0) this.#survivors.set(worker, survivors)
      const held = claims.filter((claim) => !survivors.includes(claim))
      if (held.length === 0 && survivors.length > 0) return
      // Another worker may run a job as soon as its claim is ended.
      if (held.some(({ pid }) => pid !== undefined)) endRemains(this.#surroundings.worker, this.#surroundings.events)
      const died = processSeenDeaths.of(pid)
      // A step is bounded; with its last claim the worker is out of the registry.
      const ended = await workers.gone(held.slice(0, stepLimit), worker, died && `${died.name}: ${died.message}`)
      this.#ends.tell(ended, died)
      this.#found([...new Set(ended.crashed.map(({ queue }) => queue))])
      left = held.length
    }
  }
}

/** Whether the claim names a live process of its own here, or one on another machine, of which nothing is known. */
function mayLive(claim: HeldClaim, here: ProcessIdentity): boolean {
  return isElsewhere(claim, here) || isAlive(claim, here)
}

function isElsewhere({ host, boot, pidns }: HeldClaim, here: ProcessIdentity): boolean {
  if (host === undefined) return false
  if (boot === undefined || pidns === undefined) return host !== here.host
  return !isNeighbour({ host, boot, pidns }, here)
}
