/** The live feed of a queue: the events of its jobs in all processes, read one by one as they arrive. */

import { setTimeout as delay } from 'node:timers/promises'
import { hasCode, InvalidArgumentError, UnsupportedByStoreError } from '../../core/errors.js'
import { type LiveEvent, liveBatch, liveEvent, unheardMs } from '../../core/live-event.js'
import { describe } from '../../core/messages/describe.js'
import { systemClock, systemRandom } from '../../core/platform/clock.js'
import { outageDelayMs, timerMs } from '../../core/platform/timer.js'
import { callForms, callOptions } from '../../core/values/call-check.js'
import type { LiveMessages } from '../../stores/contract/live-messages.js'
import type { Store } from '../../stores/contract/store.js'

/** The options of a live feed. */
export interface LiveOptions {
  /** Ends the feed. Default: leaving the loop or `mill.close()` ends it. */
  readonly signal?: AbortSignal | undefined
  /**
   * The most events that wait for a slow reader, 1 … 1,000,000; further ones are dropped and counted. Default 1,000.
   */
  readonly buffer?: number | undefined
}

interface Reader {
  resolve(result: IteratorResult<LiveEvent, undefined>): void
  reject(error: unknown): void
}

/**
 * An async iterable: `for await (const event of feed)`. It receives events from the first `next()` or `ready()` on. It
 * ends, without an error, when its signal aborts, the loop is left, or the mill is closed. Between reads it keeps at
 * most `buffer` events; an `events.lost` in their place has the number of dropped ones. Rejects if the store cannot be
 * used at all; while the store is unavailable the feed waits.
 */
export class LiveFeed implements AsyncIterable<LiveEvent>, AsyncIterator<LiveEvent, undefined> {
  readonly #queue: string
  readonly #connect: () => Promise<Store>
  readonly #buffer: number
  readonly #readyAfterMs: number
  readonly #over = new AbortController()
  /** The unread events, with one `events.lost` wherever some are missing. */
  readonly #events: LiveEvent[] = []
  readonly #readers: Reader[] = []
  #error: unknown
  #listening: Promise<void> | undefined
  readonly #signals: readonly AbortSignal[]
  readonly #end = () => this.#finish()

  /**
   * The feed ends when one of the `signals` aborts. `readyAfterMs`: it is ready this long after it began to watch.
   * @internal
   */
  constructor(
    queue: string,
    connect: () => Promise<Store>,
    signals: readonly AbortSignal[],
    buffer: number,
    readyAfterMs = unheardMs,
  ) {
    this.#readyAfterMs = readyAfterMs
    this.#queue = queue
    this.#connect = connect
    this.#buffer = buffer
    this.#signals = signals
    for (const one of this.#signals) one.addEventListener('abort', this.#end)
    if (this.#signals.some(({ aborted }) => aborted)) this.#finish()
  }

  /**
   * Resolves once the feed receives the events of all workers, about 1 s after it began to watch: by then each worker
   * that holds jobs of the queue has noticed. A page that reads the queue after this misses nothing in between, except
   * what a process whose loop is blocked has not noticed yet. Also resolves when the feed has ended. Rejects like
   * `next()`.
   */
  ready(): Promise<void> {
    this.#listening ??= this.#listen()
    return this.#listening
  }

  /** The next event. A waiting reader gets an event at once. */
  next(): Promise<IteratorResult<LiveEvent, undefined>> {
    this.ready().catch(() => {})
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject })
      this.#give()
    })
  }

  async return(): Promise<IteratorResult<LiveEvent, undefined>> {
    this.#finish()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #listen(): Promise<void> {
    for (let failures = 0; !this.#over.signal.aborted; failures += 1) {
      try {
        const live = liveOf(await this.#connect())
        await live.watch(this.#queue, (message) => this.#heard(message), this.#over.signal)
        await delay(timerMs(this.#readyAfterMs), undefined, { signal: this.#over.signal }).catch(() => {})
        return
      } catch (error) {
        if (this.#over.signal.aborted) return
        if (!hasCode(error, 'store-unavailable')) {
          this.#error = error
          this.#finish()
          throw error
        }
        await delay(outageDelayMs(failures, systemRandom), undefined, { signal: this.#over.signal }).catch(() => {})
      }
    }
  }

  #heard(message: string | undefined): void {
    const batch = message === undefined ? undefined : liveBatch(message)
    if (batch === undefined) this.#lose(Number.NaN)
    else {
      if (batch.lost > 0) this.#lose(batch.lost)
      for (const event of batch.events) {
        if (this.#events.length < this.#buffer) this.#events.push(liveEvent(event))
        else this.#lose(1)
        // An event for a waiting reader takes no room.
        this.#give()
      }
    }
    this.#give()
  }

  /** `count`: NaN if it is not known. */
  #lose(count: number): void {
    const last = this.#events.at(-1)
    const before = last?.type === 'events.lost' ? (last.count ?? Number.NaN) : 0
    if (last?.type === 'events.lost') this.#events.pop()
    const all = before + count
    const at = new Date(systemClock.now())
    this.#events.push({ type: 'events.lost', at, queue: this.#queue, ...(Number.isNaN(all) ? {} : { count: all }) })
  }

  #give(): void {
    while (this.#readers.length > 0) {
      const event = this.#events.shift()
      if (event !== undefined) this.#readers.shift()!.resolve({ done: false, value: event })
      else if (this.#error !== undefined) {
        this.#readers.shift()!.reject(this.#error)
        this.#error = undefined
      } else if (this.#over.signal.aborted) this.#readers.shift()!.resolve({ done: true, value: undefined })
      else return
    }
  }

  #finish(): void {
    if (this.#over.signal.aborted) return
    for (const one of this.#signals) one.removeEventListener('abort', this.#end)
    this.#events.length = 0
    this.#over.abort()
    this.#give()
  }
}

function liveOf({ live, traits }: Store): LiveMessages {
  if (live !== undefined) return live
  throw new UnsupportedByStoreError(
    traits.name,
    'live events',
    'Listen to the events of each worker process by `mill.on(…)`, or use a store on SQLite or Redis.',
  )
}

const checkEvents = callOptions('events', { signal: callForms.signal, buffer: callForms.own })

/** A feed, which `closing` also ends. Throws `InvalidArgumentError` for an invalid `buffer`. */
export function liveFeed(
  queue: string,
  connect: () => Promise<Store>,
  closing: AbortSignal | undefined,
  options: LiveOptions,
): LiveFeed {
  checkEvents(options)
  const { signal, buffer = 1_000 } = options
  if (!Number.isInteger(buffer) || buffer < 1 || buffer > 1_000_000)
    throw new InvalidArgumentError(
      `\`buffer\` must be a whole number of events from 1 to 1,000,000; got ${describe(buffer)}.`,
    )
  const signals = [signal, closing].filter((one) => one !== undefined)
  return new LiveFeed(queue, connect, signals, buffer)
}
