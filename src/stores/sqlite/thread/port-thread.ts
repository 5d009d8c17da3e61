/** A port thread: a port to the server of a SQLite store, used as the thread that it stands for. */

import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { exitGate } from './exit-gate.js'
import type { StartThread, Thread } from './sqlite-thread-client.js'
import { SqliteThreadServer } from './sqlite-thread-server.js'

/**
 * Serves the store in the thread that calls it, for a thread that has nothing else to do while a call waits for the disk
 * or for another process: one thread less, with its memory and its start.
 */
export const inPlace: StartThread = (settings) => {
  exitGate()
  const { port1, port2 } = new MessageChannel()
  new SqliteThreadServer(port2, settings).start()
  // A caller that waits for an answer keeps the thread alive by the other end.
  port2.unref()
  return new PortThread(port1)
}

export class PortThread extends EventEmitter implements Thread {
  readonly #port: MessagePort

  constructor(port: MessagePort) {
    super()
    this.#port = port
    port.on('message', (message) => this.emit('message', message))
    port.once('close', () => this.emit('exit', 0))
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message)
  }

  ref(): void {
    this.#port.ref()
  }

  unref(): void {
    this.#port.unref()
  }

  async terminate(): Promise<number> {
    this.#port.close()
    return 0
  }
}
