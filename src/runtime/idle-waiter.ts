/**
 * The idle waiter: the idle workers of a process rest here until one of their queues is rung. They share one wait on
 * the store.
 */

import { longestTimerMs, timerMs } from '../core/platform/timer.js'
import type { Store } from '../stores/contract/store.js'

/** A resting worker. */
interface Sleeper {
  readonly queues: ReadonlySet<string>
  readonly until: number
  readonly wake: (rung: string[]) => void
  readonly fail: (error: unknown) => void
}

/** A sleeper checks its time this much later than the store: a wait cut short a moment before its end costs a trip. */
const slackMs = 200

/** A shorter wait is not worth a trip to the store. It also guards against a store whose clock stands still. */
const shortestMs = 1

export class IdleWaiter {
  readonly #store: Store
  readonly #mono: () => number
  readonly #sleepers = new Set<Sleeper>()
  #listening:
    | { readonly queues: ReadonlySet<string>; readonly until: number; readonly stop: AbortController }
    | undefined

  constructor(store: Store, mono: () => number) {
    this.#store = store
    this.#mono = mono
  }

  /**
   * For how long to rest at most, where `longPollMs` is the longest wait of the queues. Where a store is let sleep, only its
   * own wait knows when to look.
   */
  longestMs(longPollMs: number): number {
    return this.#store.idle === undefined ? longPollMs : longestTimerMs
  }

  /**
   * Resolves with the queues that were rung for this sleeper alone; the caller must claim from them or ring again.
   * Resolves with none after `forMs` or when `signal` aborts. Rejects if the store fails.
   */
  rest(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]> {
    if (signal.aborted) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const lastingMs = Math.max(shortestMs, forMs)
      const over = () => sleeper.wake([])
      const leave = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', over)
        this.#sleepers.delete(sleeper)
        if (this.#sleepers.size === 0) this.#listening?.stop.abort()
      }
      const timer = setTimeout(over, timerMs(lastingMs + slackMs))
      const sleeper: Sleeper = {
        queues: new Set(queues),
        until: this.#mono() + lastingMs,
        wake: (rung) => {
          leave()
          resolve(rung)
        },
        fail: (error) => {
          leave()
          reject(error)
        },
      }
      signal.addEventListener('abort', over)
      this.#sleepers.add(sleeper)
      this.#listen()
    })
  }

  /**
   * Waits for the queues of all sleepers. Starts a new wait if a sleeper has come whose queues or time the present wait
   * leaves out.
   */
  #listen(): void {
    const queues = new Set([...this.#sleepers].flatMap((sleeper) => [...sleeper.queues]))
    const until = Math.max(...[...this.#sleepers].map((sleeper) => sleeper.until))
    const current = this.#listening
    if (current !== undefined) {
      const covers = until <= current.until && [...queues].every((name) => current.queues.has(name))
      if (covers && !current.stop.signal.aborted) return
      current.stop.abort()
    }
    const listening = { queues, until, stop: new AbortController() }
    this.#listening = listening
    // Before the sleepers are woken: the last of them to leave aborts a wait that is still under way.
    const over = () => {
      if (this.#listening === listening) this.#listening = undefined
    }
    void this.#store
      .wait([...queues], Math.max(shortestMs, Math.ceil(until - this.#mono())), listening.stop.signal)
      .then(
        (rung) => {
          over()
          if (rung.length > 0) this.#deal(rung)
          else this.#wakeDue()
        },
        (error: unknown) => {
          over()
          this.#fail(error)
        },
      )
      .then(() => {
        if (this.#listening === undefined && this.#sleepers.size > 0) this.#listen()
      })
  }

  /** A ring is for one: each queue goes to the first sleeper on it. */
  #deal(rung: readonly string[]): void {
    const dealt = new Map<Sleeper, string[]>()
    for (const name of rung) {
      const sleeper = [...this.#sleepers].find(({ queues }) => queues.has(name))
      // No sleeper: the worker that has just left is about to claim; others look for themselves within a second.
      if (sleeper !== undefined) dealt.set(sleeper, [...(dealt.get(sleeper) ?? []), name])
    }
    for (const [sleeper, names] of dealt) sleeper.wake(names)
  }

  /** Wakes the sleepers whose time is over; nothing was rung. */
  #wakeDue(): void {
    const now = this.#mono()
    for (const sleeper of [...this.#sleepers]) if (sleeper.until <= now + shortestMs) sleeper.wake([])
  }

  #fail(error: unknown): void {
    for (const sleeper of [...this.#sleepers]) sleeper.fail(error)
  }
}
