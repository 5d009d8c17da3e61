/** The entry of the lease thread: puts a store and the beat loop together. */

import { parentPort, workerData } from 'node:worker_threads'
import { beatFromThread } from '../runtime/beat-loop.js'
import { type StoreAccess, type StoreDescriptor, storeSource } from './store-source.js'

const { descriptor, access } = workerData as { descriptor: StoreDescriptor; access: StoreAccess }
const source = storeSource(descriptor, access)
beatFromThread(parentPort!, () => source.create())
