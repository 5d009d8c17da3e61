/** The entry of the guard of an isolated job: puts a store and the guard together. */

import { parentPort, workerData } from 'node:worker_threads'
import { type GuardSettings, guard } from '../workers/process-guard.js'
import { type StoreAccess, type StoreDescriptor, storeSource } from './store-source.js'

const { settings, descriptor, access } = workerData as {
  settings: GuardSettings
  descriptor: StoreDescriptor
  access: StoreAccess
}
guard(parentPort!, settings, () => storeSource(descriptor, access).create())
