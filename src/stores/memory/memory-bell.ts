/** The bell of the memory store: wakes one of those who wait for a queue, and all who watch jobs end or schedules change. */

/** Wakes a sleeper: with what woke him, or with nothing because his time is over. */
type Wake<T> = (by?: T) => void

/** The longest timer there is; whoever waits longer just looks once more in between. */
const longestTimerMs = 0x7fffffff

export class MemoryBell {
  /** With the queues they wait for, in the order in which they came. */
  readonly #waiters = new Map<Wake<string>, ReadonlySet<string>>()
  readonly #watchers = new Set<Wake<true>>()
  readonly #scheduleWatchers = new Set<Wake<true>>()
  #isScheduleUnheard = false
  readonly #unheard = new Set<string>()

  /** Wakes whoever has waited longest for the queue. */
  ring(queue: string): void {
    for (const [wake, queues] of this.#waiters) {
      if (!queues.has(queue)) continue
      wake(queue)
      return
    }
    this.#unheard.add(queue)
  }

  /** Those of the queues that were rung while nobody waited for them; told once. */
  unheard(queues: readonly string[]): string[] {
    return queues.filter((queue) => this.#unheard.delete(queue))
  }

  /** Wakes everybody who watches jobs. */
  tellEnds(): void {
    for (const wake of [...this.#watchers]) wake(true)
  }

  /** Wakes everybody who watches schedules. */
  tellSchedules(): void {
    this.#isScheduleUnheard = this.#scheduleWatchers.size === 0
    for (const wake of [...this.#scheduleWatchers]) wake(true)
  }

  /** The queue that is rung; undefined after `forMs` or when one of the signals aborts. */
  rung(queues: readonly string[], forMs: number, signals: readonly AbortSignal[]): Promise<string | undefined> {
    return asleep<string>(forMs, signals, (wake) => {
      this.#waiters.set(wake, new Set(queues))
      return () => this.#waiters.delete(wake)
    })
  }

  /** True when jobs end; undefined after `forMs` or when one of the signals aborts. */
  ended(forMs: number, signals: readonly AbortSignal[]): Promise<true | undefined> {
    return asleep<true>(forMs, signals, (wake) => {
      this.#watchers.add(wake)
      return () => this.#watchers.delete(wake)
    })
  }

  /** True when schedules change; undefined after `forMs` or when one of the signals aborts. */
  scheduled(forMs: number, signals: readonly AbortSignal[]): Promise<true | undefined> {
    if (this.#isScheduleUnheard) {
      this.#isScheduleUnheard = false
      return Promise.resolve(true)
    }
    return asleep<true>(forMs, signals, (wake) => {
      this.#scheduleWatchers.add(wake)
      return () => this.#scheduleWatchers.delete(wake)
    })
  }
}

/** Lies down until woken. `lieDown` answers with how to get up again. */
function asleep<T>(
  forMs: number,
  signals: readonly AbortSignal[],
  lieDown: (wake: Wake<T>) => () => void,
): Promise<T | undefined> {
  if (forMs <= 0 || signals.some((signal) => signal.aborted)) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const wake: Wake<T> = (by) => {
      clearTimeout(timer)
      for (const signal of signals) signal.removeEventListener('abort', over)
      getUp()
      resolve(by)
    }
    const over = () => wake()
    const getUp = lieDown(wake)
    const timer = setTimeout(over, Math.min(forMs, longestTimerMs))
    for (const signal of signals) signal.addEventListener('abort', over)
  })
}
