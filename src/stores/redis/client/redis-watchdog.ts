/** The watchdog for silent servers: ends a connection that gets no byte while an answer is due. */

import type { Redis } from 'ioredis'

const tickMs = 500

interface SeenTraffic {
  readonly bytes: number
  readonly ticks: number
}

export class RedisWatchdog {
  readonly #timer: NodeJS.Timeout
  readonly #seen = new WeakMap<object, SeenTraffic>()

  constructor(clients: () => readonly Redis[], silenceMs: number) {
    // It counts ticks, not time: a blocked event loop ticks once, and then reads what has arrived before the next tick.
    // One less, because the first tick without a new byte may come a whole tick after the last byte.
    const mostTicks = Math.floor(silenceMs / tickMs) - 1
    this.#timer = setInterval(() => {
      for (const client of clients()) this.#look(client, mostTicks)
    }, tickMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look({ stream, commandQueue }: Redis, mostTicks: number): void {
    if (stream === undefined || stream.destroyed) return
    const bytes = stream.bytesRead
    const before = this.#seen.get(stream)
    const isSilent = commandQueue.length > 0 && before?.bytes === bytes
    const ticks = isSilent ? before.ticks + 1 : 0
    if (ticks >= mostTicks) stream.destroy(new Error(`no answer for ${(mostTicks * tickMs) / 1_000} s`))
    this.#seen.set(stream, { bytes, ticks })
  }
}
