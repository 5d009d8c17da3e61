/** The lease thread: a thread with a store of its own, for the lease keeper of a worker. */

import type { Worker } from 'node:worker_threads'
import { entryFile } from '../core/platform/entry-file.js'
import { plainAccess, type StoreAccess, type StoreDescriptor } from './store-source.js'
import { type StoreThreadData, startStoreThread } from './store-thread.js'

export interface LeaseThreadData extends StoreThreadData {
  readonly openAfterMs: number
}

/**
 * A function that starts the thread. The thread runs `lease-thread-entry.ts` and, after `openAfterMs`, opens the store
 * by its descriptor. Throws `PackageBundledError` if that file is missing: without the thread, a worker would lose its
 * leases whenever its event loop is blocked.
 */
export function leaseThread(
  descriptor: StoreDescriptor,
  access: StoreAccess = plainAccess,
  openAfterMs = 0,
): () => Worker {
  const entry = entryFile('lease-thread-entry.js', () => new URL('./entries/lease-thread-entry.js', import.meta.url))
  const data: LeaseThreadData = { descriptor, access, openAfterMs }
  return () => startStoreThread('millrace-leases', entry, data)
}
