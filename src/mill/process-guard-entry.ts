/** The entry of the guard of an isolated job: connects a store with the guard. */

import { parentPort, workerData } from 'node:worker_threads'
import { type GuardSettings, guard } from '../workers/isolated/child-guard.js'
import { storeSource } from './store-source.js'
import type { StoreThreadData } from './store-thread.js'

export interface GuardThreadData extends StoreThreadData {
  readonly settings: GuardSettings
}

const { settings, descriptor, access } = workerData as GuardThreadData
guard(parentPort!, settings, () => storeSource(descriptor, access).create())
