/** The bell of the memory store: wakes one waiter for a queue, and all watchers of ended jobs or changed schedules. */

/** Wakes a sleeper, with the cause, or without one because its time is over. */
type Wake<T> = (by?: T) => void

/** The longest timer there is; a longer wait looks once more in between. */
const longestTimerMs = 0x7fffffff

export class MemoryBell {
  /** With the queues they wait for, in the order in which they came. */
  readonly #waiters = new Map<Wake<string>, ReadonlySet<string>>()
  readonly #watchers = new Set<Wake<true>>()
  readonly #scheduleWatchers = new Set<Wake<true>>()
  #isScheduleUnheard = false
  readonly #unheard = new Set<string>()

  /** Wakes the waiter that has waited longest for the queue. */
  ring(queue: string): void {
    for (const [wake, queues] of this.#waiters) {
      if (!queues.has(queue)) continue
      wake(queue)
      return
    }
    this.#unheard.add(queue)
  }

  /** Those of the queues that were rung while nobody waited for them; reported once. */
  unheard(queues: readonly string[]): string[] {
    return queues.filter((queue) => this.#unheard.delete(queue))
  }

  /** Wakes all watchers of jobs. */
  tellEnds(): void {
    for (const wake of [...this.#watchers]) wake(true)
  }

  /** Wakes all watchers of schedules. */
  tellSchedules(): void {
    this.#isScheduleUnheard = this.#scheduleWatchers.size === 0
    for (const wake of [...this.#scheduleWatchers]) wake(true)
  }

  /** Resolves with the queue that is rung; with undefined after `forMs` or when one of the signals aborts. */
  rung(queues: readonly string[], forMs: number, signals: readonly AbortSignal[]): Promise<string | undefined> {
    return asleep<string>(forMs, signals, (wake) => {
      this.#waiters.set(wake, new Set(queues))
      return () => this.#waiters.delete(wake)
    })
  }

  /** Resolves with true when jobs end; with undefined after `forMs` or when one of the signals aborts. */
  ended(forMs: number, signals: readonly AbortSignal[]): Promise<true | undefined> {
    return asleep<true>(forMs, signals, (wake) => {
      this.#watchers.add(wake)
      return () => this.#watchers.delete(wake)
    })
  }

  /** Resolves with true when schedules change; with undefined after `forMs` or when one of the signals aborts. */
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

/** Sleeps until woken. `lieDown` registers the sleeper and returns the function that removes it. */
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
