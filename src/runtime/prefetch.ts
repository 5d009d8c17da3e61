/**
 * The prefetch of a worker: measures how long jobs run and claims take, and computes how many jobs are worth claiming
 * before there are slots for them. A slot that becomes free while a claim is on its way then finds its next job at
 * hand, and need not wait for a disk.
 */

/** The weight of the newest measurement: about the last twenty count. */
const newest = 0.05
/** Jobs that run longer are not worth prefetching: a claim is short compared with them. */
const slowMs = 20
/** A prefetched job waits for its slot no longer than this, by the measurements. */
const longestWaitMs = 20
/** The prefetched jobs last for this many claims: the next claim is made when half of them are left. */
const claimsAhead = 2
/** If each call is paid for, jobs wait longer for their slots, so that a call brings more of them. */
const longestPaidWaitMs = 500
/**
 * A job that one slot took together with others begins no later than this, by the measurements: another worker may be
 * idle. Jobs that have not begun after this time are put back.
 */
export const longestInARowMs = 250

export class Prefetch {
  readonly #concurrency: number
  readonly #paidFor: number | undefined
  readonly #runMsOf = new Map<string, number>()
  #runMs: number | undefined
  #claimMs: number | undefined

  /** `paidFor`: the most jobs of one call, if each call is paid for. */
  constructor(concurrency: number, paidFor?: number) {
    this.#concurrency = concurrency
    this.#paidFor = paidFor
  }

  /** Notes how long a job of this queue ran. */
  ran(queue: string, ms: number): void {
    this.#runMs = averaged(this.#runMs, ms)
    this.#runMsOf.set(queue, averaged(this.#runMsOf.get(queue), ms))
  }

  claimed(ms: number): void {
    this.#claimMs = averaged(this.#claimMs, ms)
  }

  /**
   * The jobs worth holding in addition to those that run; 0 for queues that are slow or not measured yet. All other
   * queues get the same number, whatever their own pace: claims of unequal sizes would distort the shares that the
   * selector deals out.
   */
  ahead(queue: string): number {
    if (this.#paidFor !== undefined) {
      const jobs =
        (longestPaidWaitMs * this.#concurrency) / Math.max(this.#runMsOf.get(queue) ?? Number.POSITIVE_INFINITY, 0.001)
      return Math.floor(Math.min(claimsAhead * this.#paidFor, jobs))
    }
    if ((this.#runMsOf.get(queue) ?? slowMs) >= slowMs || this.#claimMs === undefined) return 0
    const jobsPerMs = this.#concurrency / Math.max(this.#runMs!, 0.001)
    return Math.floor(Math.min(claimsAhead * this.#claimMs, longestWaitMs) * jobsPerMs)
  }

  /** The jobs that a claim must have room for to be worth its price. */
  worthwhile(queue: string): number {
    return this.#paidFor === undefined ? 0 : Math.min(this.#paidFor, this.ahead(queue))
  }

  /** Whether the run time of the queue's jobs was measured. */
  hasRun(queue: string): boolean {
    return this.#runMsOf.has(queue)
  }

  /**
   * How many jobs of this queue a slot may take, to run one after the other, if the last must begin within `withinMs`.
   * No bound before the first measurement.
   */
  inARow(queue: string, withinMs = longestInARowMs): number {
    const runMs = this.#runMsOf.get(queue)
    return runMs === undefined ? Number.POSITIVE_INFINITY : 1 + Math.floor(withinMs / Math.max(runMs, 0.001))
  }
}

function averaged(average: number | undefined, value: number): number {
  return average === undefined ? value : average + newest * (value - average)
}
