/** A topic: a subject that several clients watch at once, read from the store by one reader for all of them. */

/** The source of a topic's messages. */
export interface Source {
  readonly keeping: Keeping
  /**
   * Begins to read; resolves once all later changes are sent. Goes on until the signal aborts; calls `over` if it has ended
   * before.
   */
  begin(tell: (message: StreamMessage) => void, signal: AbortSignal, over: () => void): Promise<void>
  /** The first messages for a client that comes later. */
  opening(): readonly StreamMessage[]
}

export class Topic {
  readonly #source: Source
  /** Its clients, and how each leaves. */
  readonly #clients = new Map<EventStream, () => void>()
  readonly #over = new AbortController()
  readonly #empty: () => void
  readonly #begun: Promise<void>

  /** `empty` is called once, when its last client has left: by itself, or because the source is over. */
  constructor(source: Source, empty: () => void) {
    this.#source = source
    this.#empty = empty
    this.#begun = source.begin(
      (message) => this.#tell(message),
      this.#over.signal,
      () => this.#finish(),
    )
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
    this.#clients.set(stream, leave)
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
    for (const client of this.#clients.keys()) client.beat()
  }

  #tell(message: StreamMessage): void {
    for (const client of this.#clients.keys()) client.send(message)
  }

  /** Ends the streams of all clients after what waits for them: nothing new would come. Who comes later gets another topic. */
  #finish(): void {
    for (const leave of [...this.#clients.values()]) leave()
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

/** One event; `data` is JSON. */
export interface StreamMessage {
  readonly event: string
  readonly data: string
}

/** The messages kept for a slow reader: only the latest, or all of them up to 1,000. */
type Keeping = 'latest' | 'all'

const mostWaiting = 1_000
const encoder = new TextEncoder()

/**
 * An event stream: server-sent events to one client. The client may read slowly: the number of waiting events is
 * bounded.
 */
export class EventStream {
  readonly response: Response
  readonly #keeping: Keeping
  #waiting: StreamMessage[] = []
  #lost = 0
  #isSilent = false
  #isOver = false
  #wake: (() => void) | undefined

  /** `left` is called once, when the client has gone. */
  constructor(keeping: Keeping, left: () => void) {
    this.#keeping = keeping
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => this.#give(controller),
        cancel: () => {
          this.#isOver = true
          this.#wake?.()
          left()
        },
      },
      { highWaterMark: 0 },
    )
    this.response = new Response(body, {
      headers: { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' },
    })
  }

  send(message: StreamMessage): void {
    if (this.#keeping === 'latest') this.#waiting = [message]
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(message)
    else this.#lost += 1
    this.#wake?.()
  }

  /** Sends a comment, so that proxies do not take the connection for dead. */
  beat(): void {
    this.#isSilent = this.#waiting.length === 0
    this.#wake?.()
  }

  /** Sends the waiting messages and ends; the client may connect again. */
  end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  async #give(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#waiting.length === 0 && !this.#isSilent && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    this.#wake = undefined
    const text = this.#taken()
    if (text !== '') controller.enqueue(encoder.encode(text))
    if (this.#isOver) controller.close()
  }

  /** All waiting messages, as text. Lost messages came after them. */
  #taken(): string {
    const lost = this.#lost === 0 ? [] : [lostMessage(this.#lost)]
    const text = [...this.#waiting, ...lost].map(textOf).join('')
    const beat = this.#isSilent && text === '' ? ':\n\n' : ''
    this.#waiting = []
    this.#lost = 0
    this.#isSilent = false
    return text + beat
  }
}

function textOf({ event, data }: StreamMessage): string {
  return `event: ${event}\ndata: ${data}\n\n`
}

function lostMessage(count: number): StreamMessage {
  return { event: 'events.lost', data: JSON.stringify({ type: 'events.lost', at: new Date(), count }) }
}
