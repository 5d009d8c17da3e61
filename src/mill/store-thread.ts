/**
 * A store thread: a thread with a store of its own, for work that must go on while the loop that started it is blocked:
 * the lease thread of a worker, and the guard of an isolated job.
 */

import { Worker } from 'node:worker_threads'
import { entryFile } from '../core/package-files.js'
import { exitGate } from '../stores/sqlite/thread/exit-gate.js'
import { plainAccess, type StoreAccess, type StoreDescriptor } from './store-source.js'

export interface StoreThreadData {
  readonly descriptor: StoreDescriptor
  readonly access: StoreAccess
}

export interface LeaseThreadData extends StoreThreadData {
  readonly openAfterMs: number
}

/**
 * A function that starts the lease thread of a worker. The thread runs `lease-thread-entry.ts` and, after `openAfterMs`, opens the store
 * by its descriptor. Throws `PackageBundledError` if that file is missing: without the thread, a worker would lose its
 * leases whenever its event loop is blocked.
 */
export function leaseThread(
  descriptor: StoreDescriptor,
  access: StoreAccess = plainAccess,
  openAfterMs = 0,
): () => Worker {
  const entry = entryFile('lease-thread-entry.js')
  const data: LeaseThreadData = { descriptor, access, openAfterMs }
  return () => startStoreThread('millrace-leases', entry, data)
}

/**
 * `entry`: the file that it runs. `data`: its `workerData`. Its young generation is small: it makes little garbage once it has
 * loaded its store, and would keep the memory that it took for that.
 */
export function startStoreThread<Data extends StoreThreadData>(name: string, entry: URL, data: Data): Worker {
  // Made here, otherwise the exit of this process would not wait for the thread's store.
  exitGate()
  // Without the loaders of this process: the thread runs none of the user's code except the module of a store.
  return new Worker(entry, { name, workerData: data, execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 2 } })
}
