/** A fault proxy: a proxy in front of a server on this machine that gives its connections the faults of a network. */

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort, loopback } from './free-port.js'

/**
 * - `none`: everything passes.
 * - `refuse`: nobody listens; existing connections stay.
 * - `blackHole`: connections are accepted and stay, but nothing passes, not even their end. Bytes sent meanwhile arrive
 * once the fault is over, however late.
 * - `dropReplies`: requests pass, answers are lost. A connection that lost an answer receives no other, only its end.
 */
export type ProxyFault = 'none' | 'refuse' | 'blackHole' | 'dropReplies'

export interface ProxyTarget {
  readonly port: number
  /** Default 127.0.0.1. */
  readonly host?: string
}

interface ProxiedConnection {
  readonly sockets: readonly [Socket, Socket]
  readonly streams: readonly [ProxiedStream, ProxiedStream]
}

const mostPortRaces = 5

/** Starts a proxy in front of the target; resolves when it listens. */
export async function faultProxy(target: ProxyTarget): Promise<FaultProxy> {
  for (let races = 0; ; races++) {
    const proxy = new FaultProxy(target, await freePort())
    try {
      await proxy.inject('none')
      return proxy
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || races === mostPortRaces) throw error
    }
  }
}

export class FaultProxy {
  readonly host = loopback
  readonly port: number
  /** Ms added in each direction to bytes sent from now on. Default 0. */
  latencyMs = 0
  /** Whether bytes travel one by one, in both directions. Default false. */
  split = false
  readonly #target: ProxyTarget
  readonly #connections = new Set<ProxiedConnection>()
  readonly #watchers = new Set<() => void>()
  #server: Server | undefined
  #fault: ProxyFault = 'none'

  constructor(target: ProxyTarget, port: number) {
    this.#target = target
    this.port = port
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`
  }

  /** The number of connections through it. */
  get connections(): number {
    return this.#connections.size
  }

  /** Sets this fault and no other. Resolves when it applies to existing connections and to new ones. */
  async inject(fault: ProxyFault): Promise<void> {
    this.#fault = fault
    if (fault === 'refuse') this.#refuse()
    else await this.#listen()
    for (const { streams } of this.#connections) for (const stream of streams) stream.deliver()
  }

  /** Resets all connections, on both sides. The present fault decides on new ones. */
  cut(): void {
    for (const connection of this.#connections) this.#drop(connection)
  }

  /** Resolves when the next answer is lost: the server has then carried out the request. */
  replyLost(): Promise<void> {
    return new Promise((resolve) => {
      this.#watchers.add(resolve)
    })
  }

  /** Resets all connections and stops listening. Closing twice is harmless. */
  async close(): Promise<void> {
    const server = this.#server
    this.#fault = 'refuse'
    this.#refuse()
    this.cut()
    if (server !== undefined) await once(server, 'close')
  }

  async #listen(): Promise<void> {
    if (this.#server !== undefined) return
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket))
    this.#server = server
    try {
      server.listen(this.port, this.host)
      await once(server, 'listening')
    } catch (error) {
      if (this.#server === server) this.#server = undefined
      throw error
    }
  }

  #refuse(): void {
    this.#server?.close()
    this.#server = undefined
  }

  #accept(client: Socket): void {
    const { port, host = loopback } = this.#target
    const server = connect({ port, host, noDelay: true, allowHalfOpen: true })
    const request = (): StreamFault => this.#streamFault('pass')
    const reply = (): StreamFault => this.#streamFault('lose')
    const connection: ProxiedConnection = {
      sockets: [client, server],
      streams: [
        new ProxiedStream(client, server, request, () => {}),
        new ProxiedStream(server, client, reply, () => this.#lost()),
      ],
    }
    this.#connections.add(connection)
    for (const socket of connection.sockets)
      socket.on('error', () => {}).on('close', (hadError) => this.#closed(connection, hadError))
  }

  #streamFault(dropped: 'pass' | 'lose'): StreamFault {
    const fates = { none: 'pass', refuse: 'pass', blackHole: 'hold', dropReplies: dropped } as const
    return { fate: fates[this.#fault], latencyMs: this.latencyMs, split: this.split }
  }

  /** A reset is passed on at once, if anything passes; the streams pass on an orderly end. */
  #closed(connection: ProxiedConnection, hadError: boolean): void {
    const isOver = connection.sockets.every(({ destroyed }) => destroyed)
    if (isOver || (hadError && this.#fault !== 'blackHole')) this.#drop(connection)
  }

  #drop(connection: ProxiedConnection): void {
    this.#connections.delete(connection)
    for (const stream of connection.streams) stream.close()
    for (const socket of connection.sockets) socket.resetAndDestroy()
  }

  #lost(): void {
    for (const watcher of this.#watchers) watcher()
    this.#watchers.clear()
  }
}

/** The fault of one direction; read anew before each delivery. */
interface StreamFault {
  /** `hold`: nothing arrives, not even an end, until that is over. `lose`: sent bytes are gone. */
  readonly fate: 'pass' | 'hold' | 'lose'
  readonly latencyMs: number
  /** Whether each byte is written by itself. */
  readonly split: boolean
}

interface Sent {
  /** Null is the end of the stream. */
  readonly bytes: Buffer | null
  readonly dueAt: number
}

/** With more bytes than this on their way, it stops reading from the sender. */
const mostOnItsWay = 1 << 20

/** A proxied stream: one direction of a connection through a fault proxy. It delivers in order, if at all. */
class ProxiedStream {
  readonly #from: Socket
  readonly #to: Socket
  readonly #fault: () => StreamFault
  readonly #onLost: () => void
  readonly #sent: Sent[] = []
  #bytesOnTheirWay = 0
  #hasEnded = false
  /** A connection never loses bytes in the middle: bytes after lost ones do not arrive either. */
  #isDumb = false
  #timer: NodeJS.Timeout | undefined
  #turn: NodeJS.Immediate | undefined

  constructor(from: Socket, to: Socket, fault: () => StreamFault, onLost: () => void) {
    this.#from = from
    this.#to = to
    this.#fault = fault
    this.#onLost = onLost
    from.on('data', (bytes) => this.#send(bytes))
    from.on('end', () => this.#end()).on('close', () => this.#end())
    to.on('drain', () => this.deliver())
  }

  /** Delivers due bytes; called again whenever the fault has changed. */
  deliver(): void {
    clearTimeout(this.#timer)
    while (this.#sent.length > 0 && this.#turn === undefined && (this.#to.destroyed || !this.#to.writableNeedDrain)) {
      const { fate, split } = this.#fault()
      if (fate === 'hold') break
      const forMs = this.#sent[0]!.dueAt - performance.now()
      if (forMs > 0) {
        this.#timer = setTimeout(() => this.deliver(), Math.ceil(forMs))
        break
      }
      this.#pass(this.#next(split), fate === 'lose')
      // In turns of the event loop, so that each byte leaves in a packet of its own.
      if (split) this.#turn = setImmediate(() => this.#nextTurn())
    }
    if (this.#from.isPaused() && this.#bytesOnTheirWay < mostOnItsWay) this.#from.resume()
  }

  /** Forgets the bytes that are on their way. */
  close(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#turn)
    this.#sent.length = 0
    this.#hasEnded = true
  }

  #send(bytes: Buffer | null): void {
    this.#sent.push({ bytes, dueAt: performance.now() + this.#fault().latencyMs })
    this.#bytesOnTheirWay += bytes?.length ?? 0
    if (this.#bytesOnTheirWay >= mostOnItsWay) this.#from.pause()
    this.deliver()
  }

  #end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#send(null)
  }

  /** The next delivery: everything sent at once, or its first byte. */
  #next(split: boolean): Buffer | null {
    const { bytes, dueAt } = this.#sent[0]!
    const next = split && bytes !== null ? bytes.subarray(0, 1) : bytes
    const rest = bytes?.subarray(next!.length)
    if (rest === undefined || rest.length === 0) this.#sent.shift()
    else this.#sent[0] = { bytes: rest, dueAt }
    this.#bytesOnTheirWay -= next?.length ?? 0
    return next
  }

  #pass(bytes: Buffer | null, isLost: boolean): void {
    this.#isDumb ||= isLost && bytes !== null
    if (bytes === null) this.#to.end()
    else if (this.#isDumb) this.#onLost()
    else if (!this.#to.destroyed) this.#to.write(bytes)
  }

  #nextTurn(): void {
    this.#turn = undefined
    this.deliver()
  }
}
