/**
 * A store thread: a thread with a store of its own, for work that must go on while the loop that started it is blocked.
 */

import { Worker } from 'node:worker_threads'
import { exitGate } from '../stores/sqlite/thread/exit-gate.js'
import type { StoreAccess, StoreDescriptor } from './store-source.js'

export interface StoreThreadData {
  readonly descriptor: StoreDescriptor
  readonly access: StoreAccess
}

/** `entry`: the file that it runs. `data`: its `workerData`. */
export function startStoreThread<Data extends StoreThreadData>(name: string, entry: URL, data: Data): Worker {
  // Made here, otherwise the exit of this process would not wait for the thread's store.
  exitGate()
  // Without the loaders of this process: the thread runs none of the user's code except the module of a store.
  return new Worker(entry, { name, workerData: data, execArgv: [] })
}
