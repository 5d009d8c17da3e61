/** The entry of the lease thread: puts a store and the beat loop together. */

import { parentPort, workerData } from 'node:worker_threads'
import { beatFromThread } from '../runtime/beat-loop.js'
import { type StoreDescriptor, storeSource } from './store-source.js'

const source = storeSource(workerData as StoreDescriptor)
beatFromThread(parentPort!, () => source.create())
