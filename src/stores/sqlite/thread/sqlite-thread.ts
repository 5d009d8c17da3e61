/** The thread of a SQLite store: serves one store, and ends when the store is closed. */

import { parentPort, workerData } from 'node:worker_threads'
import type { ThreadSettings } from './sqlite-thread-messages.js'
import { SqliteThreadServer } from './sqlite-thread-server.js'

new SqliteThreadServer(parentPort!, workerData as ThreadSettings).start()
