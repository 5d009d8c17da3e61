/**
 * The prefetch of a worker: how long its jobs run and its claims take, and so how many jobs are worth claiming before there is
 * a slot for them. A slot that ends while a claim is on its way finds its next job here instead of waiting for a disk.
 */

/** Weight of the newest measurement: about the last twenty count. */
const newest = 0.05
/** Jobs that run for longer are not worth it: a claim is short beside them. */
const slowMs = 20
/** A job claimed ahead waits for its slot no longer than this, by what was measured. */
const longestWaitMs = 20
/** What is claimed ahead lasts for so many claims: it is claimed anew when half of it is left. */
const claimsAhead = 2
/** Where each call is paid for, jobs wait for their slots longer, so that a call brings more of them. */
const longestPaidWaitMs = 500
/**
 * A job that one slot took together with others begins no later than this, by what was measured: another worker may be
 * idle. Also the time after which what has not begun is given back.
 */
export const longestInARowMs = 250

export class Prefetch {
  readonly #concurrency: number
  readonly #paidFor: number | undefined
  readonly #runMsOf = new Map<string, number>()
  #runMs: number | undefined
  #claimMs: number | undefined

  /** `paidFor`: jobs that one call brings at most, where each call is paid for. */
  constructor(concurrency: number, paidFor?: number) {
    this.#concurrency = concurrency
    this.#paidFor = paidFor
  }

  /** A job of this queue has run for so long. */
  ran(queue: string, ms: number): void {
    this.#runMs = averaged(this.#runMs, ms)
    this.#runMsOf.set(queue, averaged(this.#runMsOf.get(queue), ms))
  }

  claimed(ms: number): void {
    this.#claimMs = averaged(this.#claimMs, ms)
  }

  /**
   * Jobs worth holding beyond those that run; none for queues that are slow, or not measured yet. For all others it is the
   * same number, whatever their own pace: claims of unlike sizes would bend the shares that the selector deals out.
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

  /** Jobs that a claim must have room for to be worth its price. */
  worthwhile(queue: string): number {
    return this.#paidFor === undefined ? 0 : Math.min(this.#paidFor, this.ahead(queue))
  }

  /** Jobs of this queue that one slot may take at once, to run one after the other. No bound before the first was measured. */
  inARow(queue: string): number {
    const runMs = this.#runMsOf.get(queue)
    return runMs === undefined ? Number.POSITIVE_INFINITY : 1 + Math.floor(longestInARowMs / Math.max(runMs, 0.001))
  }
}

function averaged(average: number | undefined, value: number): number {
  return average === undefined ? value : average + newest * (value - average)
}
