/**
 * The live publisher: sends the events of this process' jobs to the watchers of a queue in any process.
 *
 * While nobody watches it costs nothing per job: it listens to the events of every job only while somebody watches. It
 * asks whether anybody watches when a claim is granted or a rarer event occurs, and again and again while this process
 * holds jobs; the answer holds for half a second. Events wait meanwhile for the answer. Within `unheardMs` of the begin
 * of a watch each process that has jobs of the queue knows of it.
 */

import type { EventMap } from '../core/events.js'
import { type LiveBatch, type LiveEventName, liveEventNames, type SentEvent, sentEvent } from '../core/live-event.js'
import type { Surroundings } from '../core/surroundings.js'
import type { Store } from '../stores/contract/store.js'
import { endsWithin } from './with-timeout.js'

/** Once the store has said that nobody watches, this holds for this many ms, counted from the question. */
const unwatchedMs = 500
/** How often this process looks whether an answer about a queue of which it holds jobs is out of date, in ms. */
const lookMs = 250
/** Events within this time travel together. */
const gatherMs = 50
/** The most waiting events of a queue, and the most in one message. */
const mostHeld = 1_000
const mostSent = 250
/** How long sending the rest may take when the mill is closed. */
const closingMs = 1_000

/** Every job has these. */
const itsEnd: LiveEventName = 'job.completed'
const ofEveryJob: readonly LiveEventName[] = ['job.started', itsEnd]

/** The events of one queue that are to be sent. */
interface Line {
  readonly queue: string
  /** `'unknown'`: the store must be asked whether anybody watches. */
  state: 'unknown' | 'asking' | 'watched' | 'unwatched'
  /** When it was asked that became `'unwatched'`, on the monotonic clock. */
  since: number
  held: SentEvent[]
  lost: number
  timer: NodeJS.Timeout | undefined
  sending: Promise<void> | undefined
}

export class LivePublisher {
  readonly #surroundings: Surroundings
  readonly #store: Pick<Store, 'live'>
  readonly #ofOneJob: boolean
  readonly #lines = new Map<string, Line>()
  readonly #stops: (() => void)[] = []
  /** Each gives the queues of the jobs that a worker or a listener of this process holds. */
  readonly #holders = new Set<() => Iterable<string>>()
  #timer: NodeJS.Timeout | undefined
  /** Unsubscribes from the events that every job has; empty while nobody watches. */
  #stopsOfAll: (() => void)[] = []

  /**
   * `ofOneJob`: this process runs one job and ends. Its worker reports the job's start. Only this process can report its
   * end once the worker is gone.
   */
  constructor(surroundings: Surroundings, store: Pick<Store, 'live'>, ofOneJob = false) {
    this.#surroundings = surroundings
    this.#store = store
    this.#ofOneJob = ofOneJob
  }

  /** Harmless on a store without live messages. */
  start(): void {
    const store = this.#store
    const { events } = this.#surroundings
    if (store.live === undefined) return
    const claimed = ({ queue }: EventMap['queue.claimed']) => {
      this.#wanted(queue)
      this.#timer ??= setInterval(() => this.#look(), lookMs).unref()
    }
    this.#stops.push(events.on('queue.claimed', claimed))
    const heard = liveEventNames.filter((name) => !ofEveryJob.includes(name))
    for (const name of this.#ofOneJob ? [...heard, itsEnd] : heard) this.#stops.push(this.#listen(name))
  }

  /** Watches are noticed while there are queues in `held`, until the function that it returns is called. */
  holding(held: () => Iterable<string>): () => void {
    this.#holders.add(held)
    return () => this.#holders.delete(held)
  }

  /** Sends the rest. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const stop of [...this.#stops.splice(0), ...this.#stopsOfAll.splice(0)]) stop()
    const lines = [...this.#lines.values()].filter(({ held, sending }) => held.length > 0 || sending !== undefined)
    await endsWithin(closingMs, Promise.all(lines.map((line) => this.#drained(line))))
  }

  /** Asks again for the queues of which jobs are held; once none are, the next claim does. */
  #look(): void {
    const held = new Set([...this.#holders].flatMap((queues) => [...queues()]))
    for (const queue of held) this.#wanted(queue)
    if (held.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #listen(name: LiveEventName): () => void {
    return this.#surroundings.events.on(name, (event) => this.#tell(name, event))
  }

  #tell(name: LiveEventName, event: EventMap[LiveEventName]): void {
    const line = this.#wanted(event.queue)
    if (line === undefined) return
    if (line.held.length >= mostHeld) {
      line.lost += 1
      return
    }
    line.held.push(sentEvent(name, event, this.#surroundings.clock.now()))
    if (line.state === 'watched') this.#sendSoon(line)
  }

  /** The line of the queue, unless nobody watches it. Asks the store if the answer is out of date. */
  #wanted(queue: string): Line | undefined {
    let line = this.#lines.get(queue)
    if (line === undefined) {
      line = { queue, state: 'unknown', since: 0, held: [], lost: 0, timer: undefined, sending: undefined }
      this.#lines.set(queue, line)
    }
    if (line.state === 'unwatched') {
      if (this.#surroundings.clock.mono() - line.since < unwatchedMs) return undefined
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
      // Events that did not reach the store are lost, and the next message says so.
      if (!(await this.#publish(line, JSON.stringify(batch)))) line.lost += batch.lost + events.length
    }
    line.sending = undefined
  }

  /** Resolves with whether the store took it. */
  async #publish(line: Line, message?: string): Promise<boolean> {
    const askedAt = this.#surroundings.clock.mono()
    let isWatched = false
    let isTaken = true
    try {
      isWatched = await this.#store.live!.publish(line.queue, message)
    } catch {
      // The worker reports the outage. No watcher hears anything while it lasts.
      isTaken = false
      isWatched = line.state === 'watched'
    }
    line.state = isWatched ? 'watched' : 'unwatched'
    if (!isWatched) {
      line.since = askedAt
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
