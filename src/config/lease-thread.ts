/** The lease thread: started for the lease keeper of a worker, with a store of its own. */

import { Worker } from 'node:worker_threads'
import { plainAccess, type StoreAccess, type StoreDescriptor } from './store-source.js'

/** What starts the thread. It runs `lease-thread-entry.ts` and opens the store by its descriptor. */
export function leaseThread(descriptor: StoreDescriptor, access: StoreAccess = plainAccess): () => Worker {
  return () =>
    // None of the loaders that the process was started with: it runs nothing of the user's but the module of a store.
    new Worker(new URL('./lease-thread-entry.js', import.meta.url), {
      name: 'millrace-leases',
      workerData: { descriptor, access },
      execArgv: [],
    })
}
