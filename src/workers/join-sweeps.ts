/**
 * The sweeps: every worker asks its store from time to time to end what has waited for too long, joins and waits for
 * signals, and to do what a process that died has left. The store makes sure that each is done once.
 */

import { timerMs } from '../core/platform/timer.js'
import type { WorkerSurroundings } from '../core/surroundings.js'
import { countBuried } from '../runtime/run/run-events.js'
import type { Joins } from '../stores/contract/joins.js'
import type { Steps } from '../stores/contract/steps.js'
import type { Store } from '../stores/contract/store.js'

/** Between two sweeps of a worker. A report that was lost with its process is delivered within twice this time. */
const sweepMs = 5_000

/** The facets of a store that are swept. */
interface SweptStore {
  readonly joins?: Pick<Joins, 'sweep'>
  readonly steps?: Pick<Steps, 'sweep'>
  readonly idle?: Store['idle']
}

export class JoinSweeps {
  readonly #surroundings: WorkerSurroundings
  readonly #store: SweptStore
  readonly #after: (ms: number, work: () => void) => () => void
  #cancel: () => void = () => {}
  #underWay: Promise<void> = Promise.resolve()
  #isStopped = false

  /** `after`: calls the work after this time, and returns the function that cancels it. */
  constructor(
    surroundings: WorkerSurroundings,
    store: SweptStore,
    after: (ms: number, work: () => void) => () => void = afterUnref,
  ) {
    this.#surroundings = surroundings
    this.#store = store
    this.#after = after
  }

  /** Spread out, so that workers do not all sweep at once. */
  start(): void {
    this.#plan(sweepMs * this.#surroundings.random())
  }

  /** Resolves when the sweep under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    await this.#underWay
  }

  #plan(ms: number): void {
    this.#cancel = this.#after(ms, () => {
      this.#underWay = this.#sweep()
    })
  }

  /** Never rejects. */
  async #sweep(): Promise<void> {
    const { worker, events, random } = this.#surroundings
    try {
      while (!this.#isStopped && !this.#store.idle?.isAsleep() && (await sweepOnce(this.#store, worker, events)).more);
    } catch (error) {
      events.emit('store.failed', { call: 'sweep', error, retryMs: sweepMs })
    }
    if (!this.#isStopped) this.#plan(sweepMs * (0.75 + random() / 2))
  }
}

/** One step of a sweep, which emits what it finds. If one facet fails, the other is swept all the same. */
export async function sweepOnce(
  { joins, steps }: SweptStore,
  worker: string,
  events: WorkerSurroundings['events'],
): Promise<{ readonly found: number; readonly more: boolean }> {
  const [ended, woken] = await Promise.allSettled([joins?.sweep(worker), steps?.sweep(worker)])
  const { failed = [], more = false } = (ended.status === 'fulfilled' && ended.value) || {}
  for (const join of failed) {
    countBuried(events, join)
    events.emit('join.failed', join)
  }
  if (ended.status === 'rejected') throw ended.reason
  if (woken.status === 'rejected') throw woken.reason
  return { found: failed.length + (woken.value?.woken ?? 0), more: more || woken.value?.more === true }
}

/** An idle process may end meanwhile. */
function afterUnref(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, timerMs(Math.ceil(ms))).unref()
  return () => clearTimeout(timer)
}
