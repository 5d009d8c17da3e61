/**
 * The live publisher: tells those who watch a queue, in whatever process, what this process' events say of its jobs.
 *
 * While nobody watches it costs nothing per job: the events that every job has are heard only while somebody does. Whether
 * anybody does is asked when a claim is granted, or when something rarer is told, and the answer holds for some seconds; what
 * is told meanwhile waits for it, so that the first job that is claimed after a watch has begun is told too, or else one that
 * is claimed a few seconds later.
 */

import type { EventMap, Events } from '../../core/events.js'
import { type LiveBatch, type LiveEventName, liveEventNames, type SentEvent, sentEvent } from '../../core/live-event.js'
import type { Clock } from '../../core/platform/clock.js'
import type { Store } from '../../stores/contract/store.js'
import { endsWithin } from '../with-timeout.js'

interface LivePublisherParts {
  readonly store: Pick<Store, 'live'>
  readonly events: Events
  readonly clock: Clock
  /** This process runs one job and ends. Of its start its worker tells; of its end, once that is gone, nobody else. */
  readonly ofOneJob?: boolean
}

/** For so long nobody is taken to watch, once the store has said so. */
const unwatchedMs = 3_000
/** What is told within so long travels together. */
const gatherMs = 50
/** Events of a queue that wait to be sent, and those of one message. */
const mostHeld = 1_000
const mostSent = 250
/** What is left when the mill is closed has so long. */
const closingMs = 1_000

/** Every job has these. */
const itsEnd: LiveEventName = 'job.completed'
const ofEveryJob: readonly LiveEventName[] = ['job.started', itsEnd]

/** What is to be told of one queue. */
interface Line {
  readonly queue: string
  /** `'unknown'`: it is to be asked whether anybody watches. */
  state: 'unknown' | 'asking' | 'watched' | 'unwatched'
  /** When `'unwatched'` was learnt, on the monotonic clock. */
  since: number
  held: SentEvent[]
  lost: number
  timer: NodeJS.Timeout | undefined
  sending: Promise<void> | undefined
}

export class LivePublisher {
  readonly #parts: LivePublisherParts
  readonly #lines = new Map<string, Line>()
  readonly #stops: (() => void)[] = []
  /** Those that hear what every job has; none while nobody watches. */
  #stopsOfAll: (() => void)[] = []

  constructor(parts: LivePublisherParts) {
    this.#parts = parts
  }

  get #ofOneJob(): boolean {
    return this.#parts.ofOneJob === true
  }

  /** Harmless on a store that cannot tell others. */
  start(): void {
    const { store, events } = this.#parts
    if (store.live === undefined) return
    this.#stops.push(events.on('queue.claimed', ({ queue }) => this.#wanted(queue)))
    const heard = liveEventNames.filter((name) => !ofEveryJob.includes(name))
    for (const name of this.#ofOneJob ? [...heard, itsEnd] : heard) this.#stops.push(this.#listen(name))
  }

  /** Sends what is left. Never rejects. */
  async close(): Promise<void> {
    for (const stop of [...this.#stops.splice(0), ...this.#stopsOfAll.splice(0)]) stop()
    const lines = [...this.#lines.values()].filter(({ held, sending }) => held.length > 0 || sending !== undefined)
    await endsWithin(closingMs, Promise.all(lines.map((line) => this.#drained(line))))
  }

  #listen(name: LiveEventName): () => void {
    return this.#parts.events.on(name, (event) => this.#tell(name, event))
  }

  #tell(name: LiveEventName, event: EventMap[LiveEventName]): void {
    const line = this.#wanted(event.queue)
    if (line === undefined) return
    if (line.held.length >= mostHeld) {
      line.lost += 1
      return
    }
    line.held.push(sentEvent(name, event, this.#parts.clock.now()))
    if (line.state === 'watched') this.#sendSoon(line)
  }

  /** The line of the queue, unless nobody watches it. Asks where that is to be known anew. */
  #wanted(queue: string): Line | undefined {
    let line = this.#lines.get(queue)
    if (line === undefined) {
      line = { queue, state: 'unknown', since: 0, held: [], lost: 0, timer: undefined, sending: undefined }
      this.#lines.set(queue, line)
    }
    if (line.state === 'unwatched') {
      if (this.#parts.clock.mono() - line.since < unwatchedMs) return undefined
      line.state = 'unknown'
    }
    if (line.state === 'unknown') {
      line.state = 'asking'
      this.#hearAll()
      line.sending = this.#ask(line)
    }
    return line
  }

  async #ask(line: Line): Promise<void> {
    await this.#publish(line)
    line.sending = undefined
    if (line.held.length > 0) this.#sendSoon(line)
  }

  #sendSoon(line: Line): void {
    if (line.sending !== undefined) return
    line.timer ??= setTimeout(() => {
      line.timer = undefined
      line.sending = this.#send(line)
    }, gatherMs).unref()
  }

  async #send(line: Line): Promise<void> {
    while (line.held.length > 0 && line.state === 'watched') {
      const events = line.held.splice(0, mostSent)
      const batch: LiveBatch = { events, lost: line.lost }
      line.lost = 0
      // What did not reach the store is lost, and the next message says so.
      if (!(await this.#publish(line, JSON.stringify(batch)))) line.lost += batch.lost + events.length
    }
    line.sending = undefined
  }

  /** Whether the store took it. */
  async #publish(line: Line, message?: string): Promise<boolean> {
    let isWatched = false
    let isTaken = true
    try {
      isWatched = await this.#parts.store.live!.publish(line.queue, message)
    } catch {
      // The worker tells of the outage. Nobody hears anything while it lasts.
      isTaken = false
      isWatched = line.state === 'watched'
    }
    line.state = isWatched ? 'watched' : 'unwatched'
    if (!isWatched) {
      line.since = this.#parts.clock.mono()
      line.held = []
      line.lost = 0
      if ([...this.#lines.values()].every(({ state }) => state === 'unwatched'))
        for (const stop of this.#stopsOfAll.splice(0)) stop()
    }
    return isTaken
  }

  #hearAll(): void {
    if (!this.#ofOneJob && this.#stopsOfAll.length === 0)
      this.#stopsOfAll = ofEveryJob.map((name) => this.#listen(name))
  }

  async #drained(line: Line): Promise<void> {
    clearTimeout(line.timer)
    await line.sending
    clearTimeout(line.timer)
    await this.#send(line)
  }
}
