/** A topic: a subject that several clients watch at once, read from the store by one reader for all of them. */

import { EventStream, type Keeping, type StreamMessage } from './event-stream.js'

/** The source of a topic's messages. */
export interface Source {
  readonly keeping: Keeping
  /** Begins to read; resolves once all later changes are sent. Goes on until the signal aborts. */
  begin(tell: (message: StreamMessage) => void, signal: AbortSignal): Promise<void>
  /** The first messages for a client that comes later. */
  opening(): readonly StreamMessage[]
}

export class Topic {
  readonly #source: Source
  readonly #clients = new Set<EventStream>()
  readonly #over = new AbortController()
  readonly #empty: () => void
  readonly #begun: Promise<void>

  /** `empty` is called once, when its last client has left. */
  constructor(source: Source, empty: () => void) {
    this.#source = source
    this.#empty = empty
    this.#begun = source.begin((message) => this.#tell(message), this.#over.signal)
  }

  /**
   * The stream of one more client; `left` is called once, when the client has gone. Rejects if the source cannot be
   * read.
   */
  async join(signal: AbortSignal, left: () => void): Promise<EventStream> {
    const leave = () => {
      if (this.#leave(stream)) left()
    }
    const stream: EventStream = new EventStream(this.#source.keeping, leave)
    this.#clients.add(stream)
    try {
      await this.#begun
    } catch (error) {
      leave()
      throw error
    }
    for (const message of this.#source.opening()) stream.send(message)
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    return stream
  }

  beat(): void {
    for (const client of this.#clients) client.beat()
  }

  #tell(message: StreamMessage): void {
    for (const client of this.#clients) client.send(message)
  }

  /** Returns whether it was there. */
  #leave(stream: EventStream): boolean {
    if (!this.#clients.delete(stream)) return false
    stream.end()
    if (this.#clients.size === 0) {
      this.#over.abort()
      this.#empty()
    }
    return true
  }
}
