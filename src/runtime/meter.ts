/**
 * The meter of a process: counts the outcomes of its jobs, and adds the counts to the history of their queues once a
 * minute and at the end. It also measures the queues of its mill while they hold any job, whether anybody works them or
 * not. It writes nothing for a minute in which nothing happened and nothing waits or runs. While the store is away it
 * keeps the counts and writes them later, each to its own minute.
 */

import type { JobCounter } from '../core/events.js'
import { timerMs } from '../core/platform/timer.js'
import type { Surroundings } from '../core/surroundings.js'
import type { HistoryCounts, HistoryEntry, HistoryGauges } from '../stores/contract/history.js'
import type { Store } from '../stores/contract/store.js'
import { runTimeBoundsMs, runTimeClass, stepMs } from '../stores/rules/history-slots.js'
import { endsWithin } from './with-timeout.js'

/**
 * The number of minutes that are kept while the store is away; counts of older minutes are added to the oldest kept
 * one.
 */
const mostKept = 60
/** A minute is written within this time after its end, so that processes do not all write at once. */
const spreadMs = 5_000
/** How long writing the rest may take when the mill is closed. */
const closingMs = 1_000

/** The counts of one minute. */
interface Minute {
  readonly counts: CountsByQueue
  /** An instant within it, on the monotonic clock. */
  readonly at: number
}

export class Meter {
  readonly #surroundings: Surroundings
  readonly #store: Pick<Store, 'history' | 'depth' | 'idle'>
  readonly #tally = new JobTally()
  /** The queues of the mill, and those that its workers serve: their gauges are written while they hold any job. */
  readonly #measured: Set<string>
  /** Queues whose last written gauges were not all 0. */
  readonly #busy = new Set<string>()
  #stopHearing = () => {}
  #minutes: readonly Minute[] = []
  #begunAt: number
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined

  /** `queues`: those of the mill. */
  constructor(surroundings: Surroundings, store: Pick<Store, 'history' | 'depth' | 'idle'>, queues: readonly string[]) {
    this.#surroundings = surroundings
    this.#store = store
    this.#measured = new Set(queues)
    this.#begunAt = surroundings.clock.mono()
  }

  /** Starts counting. Harmless on a store that keeps no history. */
  start(): void {
    const { events } = this.#surroundings
    if (this.#store.history === undefined) return
    events.counter = this.#tally
    this.#stopHearing = events.on('worker.started', ({ queues }) => {
      for (const queue of queues) this.#measured.add(queue)
    })
    this.#wait()
  }

  /** Writes the unwritten counts, unless the store takes too long. Never rejects. */
  async close(): Promise<void> {
    if (this.#surroundings.events.counter !== this.#tally) return
    clearTimeout(this.#timer)
    this.#surroundings.events.counter = undefined
    this.#stopHearing()
    await endsWithin(closingMs, this.#sending ?? Promise.resolve())
    this.turn()
    await endsWithin(
      closingMs,
      this.#addAll().catch(() => {}),
    )
  }

  /** Closes the minute that is over. */
  turn(): void {
    const now = this.#surroundings.clock.mono()
    const counts = this.#tally.take()
    if (counts.size > 0) this.#minutes = bounded([...this.#minutes, { counts, at: (this.#begunAt + now) / 2 }])
    this.#begunAt = now
  }

  /**
   * Writes the closed minutes, and the gauges of the queues. Never rejects: what fails is tried again with the next
   * minute.
   */
  send(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
    return this.#sending
  }

  async #send(): Promise<void> {
    const { events } = this.#surroundings
    if (this.#minutes.length === 0 && this.#store.idle?.isAsleep()) return
    try {
      const gauges = await this.#look()
      await this.#addAll(gauges)
    } catch (error) {
      events.emit('store.failed', { call: 'history.add', error, retryMs: stepMs.minute })
    }
  }

  /** The oldest first, each minute by a call of its own: one that failed is sent again alone. */
  async #addAll(gauges: ReadonlyMap<string, HistoryGauges> = new Map()): Promise<void> {
    const history = this.#store.history!
    let left = gauges
    while (this.#minutes.length > 0 || left.size > 0) {
      const [minute] = this.#minutes
      const isLast = this.#minutes.length <= 1
      const agoMs = minute === undefined ? 0 : Math.max(0, this.#surroundings.clock.mono() - minute.at)
      await history.add(entriesOf(minute?.counts ?? new Map(), agoMs, isLast ? left : new Map()))
      this.#minutes = this.#minutes.filter((one) => one !== minute)
      if (isLast) left = new Map()
    }
    for (const [queue, gauge] of gauges) this.#busy[isIdle(gauge) ? 'delete' : 'add'](queue)
  }

  /** The gauges of the queues that were counted last or are measured, except those that were and are empty. */
  async #look(): Promise<ReadonlyMap<string, HistoryGauges>> {
    const counted = new Set(this.#minutes.at(-1)?.counts.keys())
    const queues = [...new Set([...counted, ...this.#measured])]
    if (queues.length === 0) return new Map()
    const { depths } = await this.#store.depth(queues)
    const gauges = depths.map(
      ({ queue, lagMs, ready: waiting, running }) => [queue, { lagMs, waiting, running }] as const,
    )
    return new Map(gauges.filter(([queue, gauge]) => counted.has(queue) || this.#busy.has(queue) || !isIdle(gauge)))
  }

  /** Waits until the minute of the wall clock is over. */
  #wait(): void {
    const { clock, random } = this.#surroundings
    const leftMs = stepMs.minute - (clock.now() % stepMs.minute)
    this.#timer = setTimeout(() => {
      this.turn()
      this.#timer = setTimeout(
        () => {
          void this.send()
          this.#wait()
        },
        timerMs(random() * spreadMs),
      ).unref()
    }, timerMs(leftMs)).unref()
  }
}

/** Merges the oldest two minutes. */
function bounded(minutes: readonly Minute[]): readonly Minute[] {
  const [oldest, next, ...others] = minutes
  if (minutes.length <= mostKept) return minutes
  return [{ ...next!, counts: addedCounts(oldest!.counts, next!.counts) }, ...others]
}

function entriesOf(
  counts: CountsByQueue,
  agoMs: number,
  gauges: ReadonlyMap<string, HistoryGauges>,
): readonly HistoryEntry[] {
  return [...new Set([...counts.keys(), ...gauges.keys()])].map((queue) => {
    const gauge = gauges.get(queue)
    return { queue, agoMs, counts: counts.get(queue) ?? noCounts(), ...(gauge === undefined ? {} : { gauges: gauge }) }
  })
}

function isIdle({ lagMs, waiting, running }: HistoryGauges): boolean {
  return lagMs + waiting + running === 0
}

type Sums = { -readonly [Name in Exclude<keyof HistoryCounts, 'runTimes'>]: number } & { readonly runTimes: number[] }

/** By queue. */
export type CountsByQueue = ReadonlyMap<string, HistoryCounts>

/** A tally: outcomes of the jobs of each queue since the tally was last taken, as plain numbers. */
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

function noCounts(): Sums {
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
  counts.runTimes[runTimeClass(runMs)]! += 1
  counts.runMs += runMs
}
