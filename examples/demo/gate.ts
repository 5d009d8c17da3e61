/**
 * A gate: where packing waits until the demo has done to it what it wants to. It is a port on the loopback, which opens too
 * when the demo dies: nothing waits for ever.
 */

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** The gate as it is told to a job. */
export interface GatePlace {
  readonly port: number
  /** How many files are packed there. */
  readonly at: number
}

export class Gate {
  readonly place: GatePlace
  /** Resolves when the packing is there. */
  readonly reached: Promise<void>
  isReached = false
  readonly #server: Server
  readonly #waiting: ReadonlySet<Socket>

  private constructor(server: Server, at: number) {
    const waiting = new Set<Socket>()
    this.#server = server
    this.#waiting = waiting
    this.place = { port: (server.address() as AddressInfo).port, at }
    this.reached = new Promise((resolve) => {
      server.on('connection', (socket) => {
        waiting.add(socket)
        // Whoever waited there was killed.
        socket.on('error', () => {})
        this.isReached = true
        resolve()
      })
    })
  }

  /** A closed one, where so many files are packed. */
  static async build(at: number): Promise<Gate> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Gate(server, at)
  }

  /** For good. */
  open(): void {
    this.#server.close()
    for (const socket of this.#waiting) socket.destroy()
  }
}

/** Resolves when the gate is open, there is none, or the signal aborts. */
export function passed({ port }: GatePlace, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', signal })
    socket.on('error', () => {})
    // Unless it is read, its end is not noticed.
    socket.resume().once('close', () => resolve())
  })
}
