/** The streams of a window: its topics by subject, and the most clients that there may be. */

import { WebRefusal } from '../refusal.js'
import type { MillWindow } from '../window/mill-window.js'
import { jobSource } from './job-source.js'
import { overviewSource } from './overview-source.js'
import { queueSource } from './queue-source.js'
import { type Source, Topic } from './topic.js'

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
