/** A tally: outcomes of the jobs of each queue since the tally was last taken, as plain numbers. */

import type { JobCounter } from '../../core/events.js'
import type { HistoryCounts } from '../../stores/contract/history.js'
import { runTimeBoundsMs } from '../../stores/rules/history-slots.js'

type Sums = { -readonly [Name in Exclude<keyof HistoryCounts, 'runTimes'>]: number } & { readonly runTimes: number[] }

/** By queue. */
export type CountsByQueue = ReadonlyMap<string, HistoryCounts>

export class JobTally implements JobCounter {
  #queues = new Map<string, Sums>()

  enqueued(queue: string, jobs = 1): void {
    this.#of(queue).enqueued += jobs
  }

  started(queue: string): void {
    this.#of(queue).started += 1
  }

  completed(queue: string, runMs: number): void {
    const counts = this.#of(queue)
    counts.completed += 1
    addRun(counts, runMs)
  }

  failed(queue: string, runMs: number): void {
    const counts = this.#of(queue)
    counts.failed += 1
    addRun(counts, runMs)
  }

  buried(queue: string): void {
    this.#of(queue).dead += 1
  }

  crashed(queue: string): void {
    this.#of(queue).crashed += 1
  }

  cancelled(queue: string): void {
    this.#of(queue).cancelled += 1
  }

  /** Returns the counts and starts again from 0. */
  take(): CountsByQueue {
    const taken = this.#queues
    this.#queues = new Map()
    return taken
  }

  #of(queue: string): Sums {
    let counts = this.#queues.get(queue)
    if (counts === undefined) {
      counts = noCounts()
      this.#queues.set(queue, counts)
    }
    return counts
  }
}

export function noCounts(): Sums {
  return {
    ...{ enqueued: 0, started: 0, completed: 0, failed: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 0 },
    runTimes: new Array<number>(runTimeBoundsMs.length + 1).fill(0),
  }
}

/** The sum of both. */
export function addedCounts(one: CountsByQueue, other: CountsByQueue): CountsByQueue {
  const sums = new Map<string, HistoryCounts>(one)
  for (const [queue, counts] of other) {
    const before = sums.get(queue)
    sums.set(queue, before === undefined ? counts : sumOf(before, counts))
  }
  return sums
}

function sumOf(one: HistoryCounts, other: HistoryCounts): HistoryCounts {
  const sum = noCounts()
  for (const name of Object.keys(sum) as (keyof Sums)[]) if (name !== 'runTimes') sum[name] = one[name] + other[name]
  for (const i of sum.runTimes.keys()) sum.runTimes[i] = one.runTimes[i]! + other.runTimes[i]!
  return sum
}

function addRun(counts: Sums, runMs: number): void {
  let i = 0
  while (i < runTimeBoundsMs.length && runMs > runTimeBoundsMs[i]!) i += 1
  counts.runTimes[i]! += 1
  counts.runMs += runMs
}
