/** The entry of the lease thread: connects a store with the beat loop. */

import { parentPort, workerData } from 'node:worker_threads'
import { runLeaseThread } from '../runtime/leases/lease-thread-loop.js'
import { storeSource } from './store-source.js'
import type { LeaseThreadData } from './store-thread.js'

const { descriptor, access, openAfterMs } = workerData as LeaseThreadData
const source = storeSource(descriptor, access)
// A beat that waits for the disk holds up nothing but the next beat.
runLeaseThread(parentPort!, () => source.create({ inPlace: true }), openAfterMs)
