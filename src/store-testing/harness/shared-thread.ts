/**
 * A shared thread: one thread of this process that serves any number of SQLite stores. Starting a thread takes longer
 * than most tests need the store. Calls, answers and errors still cross the same border by the same messages.
 */

import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { exitGate } from '../../stores/sqlite/thread/exit-gate.js'
import type { StartThread, Thread } from '../../stores/sqlite/thread/sqlite-thread-client.js'
import type { ThreadSettings } from '../../stores/sqlite/thread/sqlite-thread-messages.js'
import { SqliteThreadServer } from '../../stores/sqlite/thread/sqlite-thread-server.js'

interface Served {
  readonly port: MessagePort
  readonly settings: ThreadSettings
}

const role = 'millrace shared thread'
let host: Worker | undefined

/**
 * Starts the shared thread for the first store, and makes it serve each further one. The thread ends with the process.
 */
export const sharedThread: StartThread = (settings) => {
  exitGate()
  host ??= started()
  const { port1, port2 } = new MessageChannel()
  host.postMessage({ port: port2, settings } satisfies Served, [port2])
  return new PortThread(port1)
}

function started(): Worker {
  const worker = new Worker(new URL(import.meta.url), { workerData: role, execArgv: [] })
  worker.unref()
  return worker
}

/** One end of a channel, with the members of a thread that are used. */
class PortThread extends EventEmitter implements Thread {
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

if (workerData === role)
  parentPort!.on('message', ({ port, settings }: Served) => new SqliteThreadServer(port, settings).start())
