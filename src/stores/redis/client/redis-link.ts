/** A Redis link: one client, the calls on it, and their waiting for its connection, which is made again for ever. */

import type { Cluster, Redis } from 'ioredis'
import { ClosedError, isMillraceError } from '../../../core/errors.js'
import { type Clock, systemClock } from '../../../core/platform/clock.js'
import { timerMs } from '../../../core/platform/timer.js'
import type { RedisCall } from './redis-call.js'
import type { RedisReply } from './redis-client.js'
import { againInMs, type RedisClients } from './redis-connection-options.js'
import { failureOf, isReadOnly, redisError, tooFewReplicas, unreachable } from './redis-errors.js'
import { RedisWatchdog } from './redis-watchdog.js'
import { type Wire, wireOf } from './redis-wire.js'

/** How long a call waits for a connection, or is tried again, in all. */
export const patienceMs = 2_000
/** How long replicas are waited for; after that the call is in doubt. */
const replicasMs = 1_000

/** A command to be sent, as often as it takes. */
export interface RedisErrand {
  readonly name: string
  readonly wire: Wire
  /** A cluster sends it to the master that holds this key. */
  readonly key?: string
  /** What is sent where the server says that it does not know the script. */
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
  readonly #waiters = new Set<WaitingCall>()
  /** What the last attempt to connect failed with. */
  #trouble: unknown
  #isClosed = false

  /** `silenceMs`: an answer that is due is waited for so long at most, then the connection is given up. */
  constructor(clients: RedisClients, client: Client, silenceMs = 5_000, clock: Clock = systemClock) {
    this.client = client
    this.#clients = clients
    this.#clock = clock
    const note = (error: unknown) => this.#note(error)
    const events = client as Redis
    events.on('error', note)
    // The name of the event for a node of a cluster differs from version to version.
    for (const name of ['nodeError', 'node error', 'sentinelError']) events.on(name, note)
    events.on('ready', () => {
      this.#trouble = undefined
      for (const { resolve } of this.#waiters) resolve()
    })
    this.#watch = new RedisWatchdog(() => this.nodes(), silenceMs)
  }

  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** The clients of the connections it consists of. */
  nodes(): Redis[] {
    return this.client.isCluster ? (this.client as Cluster).nodes() : [this.client as Redis]
  }

  /**
   * Resolves with the answer. What was not executed is sent again with growing pauses for 2 s; what is in doubt is not.
   * `replicas`: then waits until so many have it. Throws the typed errors of the client.
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
        const failure = failureOf(error, call.socket !== undefined)
        if (failure === 'unknown-script' && errand.fallback !== undefined) {
          errand = errand.fallback()
          continue
        }
        if (isReadOnly(error)) this.#lookAgain(call, error)
        if (failure !== 'not-executed') throw redisError(this.#clients.where, error, failure)
        const leftMs = endsAt - this.#clock.mono()
        if (leftMs <= 0) throw this.#outOfTime(call, error)
        // The last attempt is made when the time is over, not before a pause that would outlast it.
        await new Promise((resolve) => setTimeout(resolve, timerMs(Math.min(againInMs(failures), leftMs))))
        if (this.#isClosed) throw this.#closed()
      }
    }
  }

  /** Sends it now, once. Its promise rejects with what the client reports. */
  send({ name, wire, key }: RedisErrand): RedisCall {
    const call = this.#clients.call(name, wire, key)
    const sent = this.client.sendCommand(call)
    if (this.client.isCluster) call.followRedirections()
    // Where somebody traces ioredis, this is another promise, which nobody awaits.
    if (sent !== call.promise) (sent as Promise<unknown>).catch(() => {})
    return call
  }

  /** Resolves when it is connected; rejects after `forMs`, or as soon as the server refuses us. */
  async ready(forMs: number, signal?: AbortSignal): Promise<void> {
    if (this.#isClosed) throw this.#closed()
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

  /** Ends the connection at once; it is made again. What is under way is in doubt. */
  drop(): void {
    for (const { stream } of this.nodes()) stream?.destroy()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#watch.stop()
    for (const { reject } of this.#waiters) reject(this.#closed())
    const nodes = this.nodes()
    this.client.disconnect()
    for (const { stream } of nodes) stream?.destroy()
  }

  #confirmation({ key }: RedisErrand, replicas: number): RedisCall {
    const wire = wireOf(['WAIT', String(replicas), String(replicasMs)])
    const call = this.send({ name: 'wait', wire, ...(key === undefined ? {} : { key }) })
    // Where the call itself fails, nobody asks any more.
    call.promise.catch(() => {})
    return call
  }

  /** Throws `StoreUnavailableError` unless so many replicas have what the call wrote. */
  async #confirmed(errand: RedisErrand, call: RedisCall, confirmation: RedisCall, replicas: number): Promise<void> {
    let [last, count] = [confirmation, 0]
    try {
      count = Number(await last.promise)
      // The call was sent on to another node: that one must be asked.
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
    this.#trouble = redisError(this.#clients.where, error, failure)
    for (const { reject } of this.#waiters) reject(this.#trouble as Error)
  }

  /** For a call that was not executed in time. If it was not even sent, the connection's own trouble says more than that. */
  #outOfTime({ socket }: RedisCall, error: unknown): Error {
    const { where } = this.#clients
    const isSent = socket !== undefined || this.#trouble === undefined
    return isSent ? redisError(where, error, 'not-executed') : unreachable(where, this.#trouble)
  }

  /** A replica answered: by now somebody else may be the master. */
  #lookAgain(call: RedisCall, error: unknown): void {
    // Where nobody is found in time, this is why.
    this.#trouble = error
    if (this.client.isCluster) (this.client as Cluster).refreshSlotsCache()
    else if (call.socket === (this.client as Redis).stream) (this.client as Redis).disconnect(true)
  }

  #closed(): ClosedError {
    return new ClosedError('the store')
  }
}
