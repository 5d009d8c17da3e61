/** The entry of the lease thread: connects a store with the beat loop. */

import { parentPort, workerData } from 'node:worker_threads'
import { runLeaseThread } from '../runtime/leases/lease-thread-loop.js'
import type { LeaseThreadData } from './store-thread.js'

const { descriptor, access, openAfterMs } = workerData as LeaseThreadData
// Loaded no sooner than it is opened: while this thread starts, the worker claims its first jobs.
const create = async () => {
  const { storeSource } = await import('./store-source.js')
  // A beat that waits for the disk holds up nothing but the next beat.
  return storeSource(descriptor, access).create({ inPlace: true })
}
runLeaseThread(parentPort!, create, openAfterMs)
