/** A store thread: one that opens a store of its own, for what must go on while the loop that started it is blocked. */

import { Worker } from 'node:worker_threads'
import { exitGate } from '../stores/sqlite/thread/exit-gate.js'
import type { StoreAccess, StoreDescriptor } from './store-source.js'

export interface StoreThreadData {
  readonly descriptor: StoreDescriptor
  readonly access: StoreAccess
}

/** `entry` is what it runs; `data` is its `workerData`. */
export function startStoreThread<Data extends StoreThreadData>(name: string, entry: URL, data: Data): Worker {
  // Made here, or the exit of this process would not know of what the thread's store is at.
  exitGate()
  // None of the loaders that the process was started with: it runs nothing of the user's but the module of a store.
  return new Worker(entry, { name, workerData: data, execArgv: [] })
}
