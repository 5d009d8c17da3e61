/**
 * The blocking connection: waits for a marker in one of several sorted sets. It waits in rounds, so that a lost server
 * cannot make it wait longer.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { ClosedError, hasCode, isMillraceError } from '../../../core/errors.js'
import { type Clock, systemClock } from '../../../core/platform/clock.js'
import { timerMs } from '../../../core/platform/timer.js'
import type { RedisCall } from './redis-call.js'
import type { PoppedMarker, RedisReply } from './redis-client.js'
import { againInMs } from './redis-connection-options.js'
import { failureOf, redisError } from './redis-errors.js'
import type { RedisErrand, RedisLink } from './redis-link.js'
import { wireOf } from './redis-wire.js'

/** The longest wait to ask of the server in one round. After it the server must answer. */
const roundMs = 5_000
/** How much longer than asked the server may take. */
const graceMs = 2_000
/** How long it may take to end a blocking command from the other connection. */
const unblockMs = 1_000

interface Marker {
  readonly key: string
  readonly member: Buffer
  readonly score: Buffer
}

export class RedisBlockingConnection {
  readonly #where: string
  readonly #link: RedisLink<Redis>
  readonly #commands: RedisLink
  readonly #clock: Clock
  /** The server's id for this connection, and the stream that it is valid for. */
  #client: { readonly id: Promise<string>; readonly stream: object } | undefined
  #isPopping = false
  #isClosed = false

  constructor(where: string, link: RedisLink<Redis>, commands: RedisLink, clock: Clock = systemClock) {
    this.#where = where
    this.#link = link
    this.#commands = commands
    this.#clock = clock
  }

  /** See `RedisClient.pop`. */
  pop(keys: readonly string[], forMs: number, signal: AbortSignal): Promise<string | undefined> {
    return this.#popping(() => this.#rounds(keys, this.#clock.mono() + forMs, signal))
  }

  /** See `RedisClient.popAndRun`. */
  popAndRun(keys: readonly string[], forMs: number, signal: AbortSignal, errand: RedisErrand): Promise<PoppedMarker> {
    return this.#popping(() => this.#roundAndRun(keys, Math.min(forMs, roundMs), signal, errand))
  }

  async #popping<T>(pop: () => Promise<T>): Promise<T> {
    if (this.#isPopping) throw new Error('a pop is under way on this connection already')
    this.#isPopping = true
    try {
      return await pop()
    } finally {
      this.#isPopping = false
    }
  }

  close(): void {
    this.#isClosed = true
    this.#link.close()
  }

  async #rounds(keys: readonly string[], endsAt: number, signal: AbortSignal): Promise<string | undefined> {
    for (let failures = 0; !signal.aborted; ) {
      const leftMs = endsAt - this.#clock.mono()
      if (failures === 0 && leftMs <= 0) return undefined
      try {
        await this.#link.ready(leftMs, signal)
        if (signal.aborted) return undefined
        const marker = await this.#round(keys, Math.min(endsAt - this.#clock.mono(), roundMs), signal)
        if (marker !== undefined) return signal.aborted ? await this.#putBack(marker) : marker.key
        failures = 0
      } catch (error) {
        if (this.#isClosed) throw new ClosedError('the store')
        if (signal.aborted) return undefined
        const typed = this.#typed(error)
        const leftMs = endsAt - this.#clock.mono()
        if (!hasCode(typed, 'store-unavailable') || leftMs <= 0) throw typed
        await this.#pause(Math.min(againInMs(failures++), leftMs), signal)
      }
    }
    return undefined
  }

  /** Sends one blocking command. Rejects with the client's error. */
  async #round(keys: readonly string[], forMs: number, signal: AbortSignal): Promise<Marker | undefined> {
    const id = this.#clientId()
    // 0 would wait forever.
    const seconds = (Math.max(1, Math.ceil(forMs)) / 1_000).toFixed(3)
    const call = this.#link.send({ name: 'bzpopmin', wire: wireOf(['BZPOPMIN'], keys, [seconds]) })
    let overdue = setTimeout(() => this.#giveUp(call), timerMs(forMs + graceMs))
    const unblock = () => {
      clearTimeout(overdue)
      overdue = setTimeout(() => this.#giveUp(call), unblockMs)
      void this.#unblock(id, call)
    }
    signal.addEventListener('abort', unblock)
    try {
      return markerOf(await call.promise)
    } finally {
      clearTimeout(overdue)
      signal.removeEventListener('abort', unblock)
    }
  }

  /** Sends one blocking command, and the errand behind it, in one write. */
  async #roundAndRun(
    keys: readonly string[],
    forMs: number,
    signal: AbortSignal,
    errand: RedisErrand,
  ): Promise<PoppedMarker> {
    let isSent = false
    try {
      await this.#link.ready(forMs, signal)
      if (signal.aborted) return {}
      const round = this.#round(keys, forMs, signal)
      const call = this.#link.send(errand)
      isSent = true
      const [popped, done] = await Promise.allSettled([round, call.promise])
      const key = popped.status === 'fulfilled' && popped.value !== undefined ? { key: popped.value.key } : {}
      if (done.status === 'fulfilled') return { ...key, reply: done.value }
      const failure = failureOf(done.reason, call.socket !== undefined)
      if (failure === 'in-doubt') throw redisError(this.#where, done.reason, failure)
      if (popped.status === 'rejected') throw popped.reason
      // Nobody has taken what the marker is for.
      const isLeft = signal.aborted && popped.value !== undefined && (await this.#putBack(popped.value)) === undefined
      return isLeft ? {} : key
    } catch (error) {
      if (this.#isClosed) throw new ClosedError('the store')
      if (signal.aborted && !isSent) return {}
      throw this.#typed(error)
    }
  }

  #giveUp(call: RedisCall): void {
    // If the event loop was blocked, what has arrived is read first.
    setImmediate(() => {
      if (!call.isSettled) this.#link.drop()
    })
  }

  /** Ends the blocking command from the other connection. If that fails, drops this connection. */
  async #unblock(id: Promise<string>, call: RedisCall): Promise<void> {
    try {
      const wire = wireOf(['CLIENT', 'UNBLOCK', await id])
      for (let attempts = 0; !call.isSettled && !this.#isClosed; attempts++) {
        if (!this.#commands.isReady) return this.#link.drop()
        await this.#commands.send({ name: 'client', wire }).promise
        // The unblock may have arrived before the command that it should end.
        await new Promise((resolve) => setTimeout(resolve, Math.min(2 ** attempts, 100)))
      }
    } catch {
      if (!call.isSettled) this.#link.drop()
    }
  }

  #clientId(): Promise<string> {
    const { stream } = this.#link.client
    if (this.#client?.stream !== stream) {
      const { promise } = this.#link.send({ name: 'client', wire: wireOf(['CLIENT', 'ID']) })
      this.#client = { id: promise.then(String), stream }
      // If it fails, the blocking command sent after it fails too.
      this.#client.id.catch(() => {})
    }
    return this.#client.id
  }

  /** Puts a marker back for the next waiter. Returns undefined, or the key if that fails: then the caller keeps it. */
  async #putBack({ key, member, score }: Marker): Promise<string | undefined> {
    try {
      await this.#commands.call({ name: 'zadd', wire: wireOf(['ZADD', key, score, member]), key })
      return undefined
    } catch {
      return key
    }
  }

  #typed(error: unknown): Error {
    return isMillraceError(error) ? error : redisError(this.#where, error, failureOf(error, true))
  }

  async #pause(forMs: number, signal: AbortSignal): Promise<void> {
    await delay(timerMs(forMs), undefined, { signal }).catch(() => {})
  }
}

function markerOf(reply: RedisReply): Marker | undefined {
  if (!Array.isArray(reply)) return undefined
  const [key, member, score] = reply as Buffer[]
  return { key: key!.toString(), member: member!, score: score! }
}
