/** A Redis link: one client and the calls on it, which wait for its connection. It always reconnects. */

import type { Cluster, Redis } from 'ioredis'
import { ClosedError, isMillraceError } from '../../../core/errors.js'
import { type Clock, systemClock } from '../../../core/platform/clock.js'
import { timerMs } from '../../../core/platform/timer.js'
import type { RedisCall } from './redis-call.js'
import type { RedisReply } from './redis-client.js'
import { againInMs, type RedisClients } from './redis-connection-options.js'
import {
  failureOf,
  isLoginRefused,
  isReadOnly,
  loginRefused,
  redisError,
  tooFewReplicas,
  unreachable,
} from './redis-errors.js'
import { type Wire, wireOf } from './redis-wire.js'

/** How long a call waits for a connection, or is tried again, in all. */
export const patienceMs = 2_000

/** How long a call waits for replicas. After that it is in doubt. */
const replicasMs = 1_000

/** A command that can be sent several times. */
export interface RedisErrand {
  readonly name: string
  readonly wire: Wire
  /** A cluster sends it to the master that holds this key. */
  readonly key?: string
  /** Makes the command to send if the server does not know the script. */
  readonly fallback?: () => RedisErrand
}

interface WaitingCall {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class RedisLink<Client extends Redis | Cluster = Redis | Cluster> {
  readonly client: Client
  readonly #clients: RedisClients
  readonly #clock: Clock
  readonly #watch: RedisWatchdog
  /** A cluster has none: its own connections and timers keep the process alive. */
  readonly #idleSocket: RedisIdleSocket | undefined
  readonly #waiters = new Set<WaitingCall>()
  /** The error of the last attempt to connect. */
  #trouble: unknown
  #isClosed = false

  /** `silenceMs`: how long to wait for a reply that is due before the connection is given up. */
  constructor(clients: RedisClients, client: Client, silenceMs = 5_000, clock: Clock = systemClock) {
    this.client = client
    this.#clients = clients
    this.#clock = clock
    const note = (error: unknown) => this.#note(error)
    const events = client as Redis
    events.on('error', note)
    // The event for a node of a cluster has different names in different versions.
    for (const name of ['nodeError', 'node error', 'sentinelError']) events.on(name, note)
    events.on('ready', () => {
      this.#trouble = undefined
      for (const { resolve } of this.#waiters) resolve()
    })
    this.#watch = new RedisWatchdog(() => this.nodes(), silenceMs)
    this.#idleSocket = client.isCluster ? undefined : new RedisIdleSocket(client as Redis)
  }

  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** The clients of its connections: one, or one for each node of a cluster. */
  nodes(): Redis[] {
    return this.client.isCluster ? (this.client as Cluster).nodes() : [this.client as Redis]
  }

  /**
   * Resolves with the answer. A call that was not executed is sent again with growing pauses for 2 s; one in doubt is
   * not. `replicas`: then waits until this many have it. Throws the typed errors of the client.
   */
  async call(errand: RedisErrand, replicas = 0): Promise<RedisReply> {
    const endsAt = this.#clock.mono() + patienceMs
    for (let failures = 0; ; failures++) {
      if (!this.isReady) await this.ready(endsAt - this.#clock.mono())
      const call = this.send(errand)
      const confirmation = replicas > 0 ? this.#confirmation(errand, replicas) : undefined
      try {
        const reply = await call.promise
        if (confirmation !== undefined) await this.#confirmed(errand, call, confirmation, replicas)
        return reply
      } catch (error) {
        if (this.#isClosed) throw this.#closed()
        if (isMillraceError(error)) throw error
        const failure = this.#mayBeRenewed(error) ? 'not-executed' : failureOf(error, call.socket !== undefined)
        if (failure === 'unknown-script' && errand.fallback !== undefined) {
          errand = errand.fallback()
          continue
        }
        if (isReadOnly(error)) this.#lookAgain(call, error)
        if (failure !== 'not-executed') throw redisError(this.#clients.where, error, failure)
        const leftMs = endsAt - this.#clock.mono()
        if (leftMs <= 0) throw this.#outOfTime(call, error)
        // The last attempt is made at the end of the time, even if the next pause would be longer.
        await new Promise((resolve) => setTimeout(resolve, timerMs(Math.min(againInMs(failures), leftMs))))
        if (this.#isClosed) throw this.#closed()
      }
    }
  }

  /** Sends the command now, once. The promise rejects with the client's error. */
  send({ name, wire, key }: RedisErrand): RedisCall {
    this.#idleSocket?.hold()
    const call = this.#clients.call(name, wire, key)
    const sent = this.client.sendCommand(call)
    if (this.client.isCluster) call.followRedirections()
    // If ioredis is traced, this is another promise, which nobody awaits.
    if (sent !== call.promise) (sent as Promise<unknown>).catch(() => {})
    return call
  }

  /** Resolves when the link is connected. Rejects after `forMs`, or as soon as the server refuses access. */
  async ready(forMs: number, signal?: AbortSignal): Promise<void> {
    if (this.#isClosed) throw this.#closed()
    // Who awaits the link sends a command next, perhaps by the client itself.
    this.#idleSocket?.hold()
    if (this.isReady || signal?.aborted) return
    const { status } = this.client
    if (status === 'wait' || status === 'end') this.client.connect().catch((error) => this.#note(error))
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', waiter.resolve)
        this.#waiters.delete(waiter)
      }
      const waiter: WaitingCall = {
        resolve() {
          leave()
          resolve()
        },
        reject(error) {
          leave()
          reject(error)
        },
      }
      const timer = setTimeout(
        () => waiter.reject(unreachable(this.#clients.where, this.#trouble)),
        timerMs(Math.max(0, forMs)),
      )
      signal?.addEventListener('abort', waiter.resolve)
      this.#waiters.add(waiter)
    })
  }

  /** Ends the connection at once and reconnects. Running calls are in doubt. */
  drop(): void {
    for (const { stream } of this.nodes()) stream?.destroy()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#watch.stop()
    this.#idleSocket?.stop()
    for (const { reject } of this.#waiters) reject(this.#closed())
    const nodes = this.nodes()
    this.client.disconnect()
    for (const { stream } of nodes) stream?.destroy()
  }

  #confirmation({ key }: RedisErrand, replicas: number): RedisCall {
    const wire = wireOf(['WAIT', String(replicas), String(replicasMs)])
    const call = this.send({ name: 'wait', wire, ...(key === undefined ? {} : { key }) })
    // If the call itself fails, nobody awaits this.
    call.promise.catch(() => {})
    return call
  }

  /** Throws `StoreUnavailableError` unless this many replicas have what the call wrote. */
  async #confirmed(errand: RedisErrand, call: RedisCall, confirmation: RedisCall, replicas: number): Promise<void> {
    let [last, count] = [confirmation, 0]
    try {
      count = Number(await last.promise)
      // The call was redirected to another node, which must be asked instead.
      if (last.socket !== call.socket) {
        last = this.#confirmation(errand, replicas)
        count = Number(await last.promise)
      }
    } catch (error) {
      if (this.#isClosed) throw this.#closed()
      throw redisError(this.#clients.where, error, 'in-doubt')
    }
    if (count < replicas || last.socket !== call.socket) throw tooFewReplicas(this.#clients.where, replicas, count)
  }

  #note(error: unknown): void {
    this.#trouble = error
    const failure = failureOf(error, false)
    if (failure !== 'refused') return
    const { where } = this.#clients
    if (this.#mayBeRenewed(error)) {
      this.#trouble = loginRefused(where, error)
      return
    }
    this.#trouble = redisError(where, error, failure)
    for (const { reject } of this.#waiters) reject(this.#trouble as Error)
  }

  /** The error for a call that was not executed in time. If it was not even sent, the connection's error says more. */
  #outOfTime({ socket }: RedisCall, error: unknown): Error {
    const { where } = this.#clients
    if (this.#mayBeRenewed(error)) return loginRefused(where, error)
    const isSent = socket !== undefined || this.#trouble === undefined
    return isSent ? redisError(where, error, 'not-executed') : unreachable(where, this.#trouble)
  }

  /** The login was refused, and the next connection may bring another. */
  #mayBeRenewed(error: unknown): boolean {
    return this.#clients.login?.hasWorked === true && isLoginRefused(error)
  }

  /** A replica answered: another server may be the master now. */
  #lookAgain(call: RedisCall, error: unknown): void {
    // The reason to report if no master is found in time.
    this.#trouble = error
    if (this.client.isCluster) (this.client as Cluster).refreshSlotsCache()
    else if (call.socket === (this.client as Redis).stream) (this.client as Redis).disconnect(true)
  }

  #closed(): ClosedError {
    return new ClosedError('the store')
  }
}

/** How often an idle socket looks. One that is idle at two looks in a row is let go. */
const lookMs = 500

/**
 * The idle socket: a connection without an outstanding command keeps no process alive. While the server is away, the
 * timer by which ioredis tries again does. A listener on a channel that must keep the process alive has its own timer.
 */
class RedisIdleSocket {
  readonly #timer: NodeJS.Timeout
  /** The socket that was idle at the last look, and whether it is let go. */
  #idle: Redis['stream'] | undefined
  #isLetGo = false

  constructor(client: Redis) {
    this.#timer = setInterval(() => this.#look(client), lookMs).unref()
  }

  /** Keeps the process alive until the answer has come. Call it before every command. */
  hold(): void {
    if (!this.#isLetGo) return
    this.#idle!.ref?.()
    this.#isLetGo = false
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look({ stream, commandQueue }: Redis): void {
    const isIdle = stream !== undefined && commandQueue.length === 0
    if (isIdle && this.#idle === stream) {
      // A connector of the user may give a stream that has neither.
      stream.unref?.()
      this.#isLetGo = true
    } else {
      this.hold()
      this.#idle = isIdle ? stream : undefined
    }
  }
}

const tickMs = 500

interface SeenTraffic {
  readonly bytes: number
  readonly ticks: number
}

/** The watchdog for silent servers: ends a connection that gets no byte while an answer is due. */
class RedisWatchdog {
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
