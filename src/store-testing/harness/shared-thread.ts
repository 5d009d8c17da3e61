/**
 * A shared thread: one thread of this process that serves any number of SQLite stores. Starting a thread takes longer
 * than most tests need the store. Calls, answers and errors still cross the same border by the same messages.
 */

import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { exitGate } from '../../stores/sqlite/thread/exit-gate.js'
import { PortThread } from '../../stores/sqlite/thread/port-thread.js'
import type { StartThread } from '../../stores/sqlite/thread/sqlite-thread-client.js'
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

if (workerData === role)
  parentPort!.on('message', ({ port, settings }: Served) => new SqliteThreadServer(port, settings).start())
