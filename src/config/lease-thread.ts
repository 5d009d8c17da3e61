/** The lease thread: started for the lease keeper of a worker, with a store of its own. */

import type { Worker } from 'node:worker_threads'
import { plainAccess, type StoreAccess, type StoreDescriptor } from './store-source.js'
import { startStoreThread } from './store-thread.js'

/** What starts the thread. It runs `lease-thread-entry.ts` and opens the store by its descriptor. */
export function leaseThread(descriptor: StoreDescriptor, access: StoreAccess = plainAccess): () => Worker {
  const entry = new URL('./lease-thread-entry.js', import.meta.url)
  return () => startStoreThread('millrace-leases', entry, { descriptor, access })
}
