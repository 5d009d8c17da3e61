/** The streams of a window: its topics by subject, the source of each, and the most clients that there may be. */

import { setTimeout as delay } from 'node:timers/promises'
import { newIn } from '../client/jobs/log-tail.js'
import type { JobEvent, JobRecord } from '../core/job/job.js'
import type { LiveEvent } from '../core/live-event.js'
import type { Logger } from '../core/logger.js'
import { systemClock } from '../core/platform/clock.js'
import { recordJson } from '../core/values/json.js'
import { failureOf, WebRefusal } from './failure.js'
import type { MillWindow } from './mill-window.js'
import { overviewOf } from './state/overview.js'
import { keptSparks, sparksOfLast } from './state/sparks.js'
import { type Source, type StreamMessage, Topic } from './topic.js'

const mostClients = 500
const beatMs = 15_000
/** After this a client must connect again, and prove again who it is. */
const longestMs = 3_600_000

export class Streams {
  readonly #window: MillWindow
  readonly #topics = new Map<string, Topic>()
  readonly #closing = new AbortController()
  #clients = 0
  #beats: NodeJS.Timeout | undefined

  constructor(window: MillWindow) {
    this.#window = window
  }

  overview(signal: AbortSignal): Promise<Response> {
    return this.#join('overview', () => overviewSource(this.#window), signal)
  }

  queue(queue: string, signal: AbortSignal): Promise<Response> {
    return this.#join(`queue ${queue}`, () => queueSource(this.#window, queue), signal)
  }

  job(queue: string, id: string, signal: AbortSignal): Promise<Response> {
    return this.#join(`job ${queue} ${id}`, () => jobSource(this.#window, queue, id), signal)
  }

  /** Ends all streams; none begins from now on. */
  close(): void {
    this.#closing.abort()
    clearInterval(this.#beats)
  }

  /** Throws a refusal if there are too many clients. */
  async #join(key: string, source: () => Source, signal: AbortSignal): Promise<Response> {
    if (this.#clients >= mostClients)
      throw new WebRefusal(
        'too-many-streams',
        `${mostClients} streams are open. Close a page, or ask without a stream.`,
        {
          'retry-after': '5',
        },
      )
    const topic = this.#topics.get(key) ?? this.#topic(key, source())
    this.#clients += 1
    const over = AbortSignal.any([signal, this.#closing.signal, AbortSignal.timeout(longestMs)])
    const stream = await topic.join(over, () => {
      this.#clients -= 1
    })
    return stream.response
  }

  #topic(key: string, source: Source): Topic {
    const topic = new Topic(source, () => {
      if (this.#topics.get(key) === topic) this.#topics.delete(key)
      if (this.#topics.size === 0) clearInterval(this.#beats)
    })
    if (this.#topics.size === 0) this.#beats = setInterval(() => this.#beat(), beatMs).unref()
    this.#topics.set(key, topic)
    return topic
  }

  #beat(): void {
    for (const topic of this.#topics.values()) topic.beat()
  }
}

const overviewEveryMs = 1_000
const sparkMinutes = 60
const sparksKeptMs = 5_000

/** The source of the overview: reads it each second, and sends it when it has changed. */
function overviewSource(window: MillWindow): Source {
  const sparks = keptSparks(sparksOfLast(sparkMinutes), sparksKeptMs, systemClock.mono)
  let last: StreamMessage | undefined
  let standing = ''
  const look = async (tell: (message: StreamMessage) => void) => {
    const { at, ...rest } = await overviewOf(window.mill, sparks)
    const now = recordJson(rest)
    if (now === standing) return
    standing = now
    last = { event: 'overview', data: recordJson({ at, ...rest }) }
    tell(last)
  }
  const goOn = async (tell: (message: StreamMessage) => void, signal: AbortSignal) => {
    while (!signal.aborted) {
      await delay(overviewEveryMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      await look(tell).catch((error: unknown) => {
        standing = ''
        tell(failureMessage(error, window.mill.logger))
      })
    }
  }
  return {
    keeping: 'latest',
    begin: async (tell, signal) => {
      await look(tell)
      void goOn(tell, signal)
    },
    opening: () => (last === undefined ? [] : [last]),
  }
}

/** The source of a queue's events: its live feed, as it is shown. */
function queueSource(window: MillWindow, queue: string): Source {
  const goOn = async (feed: AsyncIterable<LiveEvent>, tell: (message: StreamMessage) => void, over: () => void) => {
    try {
      for await (const event of feed) tell({ event: event.type, data: recordJson(window.shownEvent(event)) })
    } catch (error) {
      tell(failureMessage(error, window.mill.logger))
    } finally {
      over()
    }
  }
  return {
    keeping: 'all',
    begin: async (tell, signal, over) => {
      const feed = window.queue(queue).events({ signal })
      await feed.ready()
      void goOn(feed, tell, over)
    },
    opening: () => [{ event: 'ready', data: JSON.stringify({ queue }) }],
  }
}

/** The source of a job: its feed, as it is shown. */
function jobSource(window: MillWindow, queue: string, id: string): Source {
  const watched = new WatchedJob((job) => window.shown(job))
  const goOn = async (feed: AsyncIterable<JobEvent>, tell: (message: StreamMessage) => void, over: () => void) => {
    try {
      for await (const event of feed) for (const message of watched.heard(event)) tell(message)
    } catch (error) {
      tell(failureMessage(error, window.mill.logger))
    } finally {
      over()
    }
  }
  return {
    keeping: 'all',
    begin: async (tell, signal, over) => {
      const outage = {
        failed: (error: unknown) => tell(failureMessage(error, window.mill.logger)),
        // Says that the failure is over, also if the job has not changed meanwhile.
        over: () => watched.record().forEach(tell),
      }
      const feed = window.job(queue, id).follow(signal, outage).events()
      // `opening` informs its clients.
      const first = await feed.next()
      if (!first.done) watched.heard(first.value)
      void goOn(feed, tell, over)
    },
    opening: () => watched.opening(),
  }
}

const endMessage: StreamMessage = { event: 'end', data: '{}' }
/** The most text of a log that is kept. */
const longestLog = 65_536

class WatchedJob {
  hasEnded = false
  readonly #shown: (job: JobRecord) => JobRecord
  #job: JobRecord | undefined
  /** As the job has it. */
  #whole = ''
  #record = ''
  #log = ''

  constructor(shown: (job: JobRecord) => JobRecord) {
    this.#shown = shown
  }

  /** The news of an event. */
  heard(event: JobEvent): StreamMessage[] {
    if (event.type === 'end') {
      this.hasEnded = true
      return [endMessage]
    }
    if (event.type === 'job') this.#job = event.job
    else this.#whole = (event.isGap ? event.text : this.#whole + event.text).slice(-longestLog)
    // The whole log: what `redact` hides may be at the edge of a part.
    return this.#job === undefined ? [] : this.#news(this.#shown({ ...this.#job, log: this.#whole }))
  }

  #news({ log = this.#log, ...job }: JobRecord): StreamMessage[] {
    const messages: StreamMessage[] = []
    const { text, isGap } = newIn(this.#log, log)
    if (text !== '') messages.push({ event: 'log', data: JSON.stringify({ text, isGap }) })
    const record = recordJson(job)
    if (record !== this.#record) messages.push({ event: 'job', data: record })
    this.#log = log
    this.#record = record
    return messages
  }

  /** Its record as it was told last; nothing if it was not. */
  record(): StreamMessage[] {
    return this.#record === '' ? [] : [{ event: 'job', data: this.#record }]
  }

  opening(): StreamMessage[] {
    const log = { event: 'log', data: JSON.stringify({ text: this.#log, isGap: false }) }
    return [...this.record(), ...(this.#log === '' ? [] : [log]), ...(this.hasEnded ? [endMessage] : [])]
  }
}

/** The message of a failure: the source of a stream cannot be read now. */
function failureMessage(error: unknown, logger: Logger): StreamMessage {
  const { code, message } = failureOf(error, logger)
  return { event: 'failure', data: JSON.stringify({ code, message }) }
}
