/** The endpoints of workers: where they run, which queues they serve, and orders to stop. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import { defined } from '../../core/values/defined.js'
import type { Mill } from '../../mill/mill.js'
import { type ProcessIdentity, processIdentity } from '../../runtime/process/process-identity.js'
import { livenessOf } from '../../runtime/process/process-peers.js'
import type { HeldClaim, SeenWorker, WorkerRegistry, WorkerSignal } from '../../stores/contract/worker-registry.js'
import { WebRefusal } from '../failure.js'
import type { MillWindow } from '../mill-window.js'
import { endpoint } from './endpoint.js'
import { changed, limit, nothing, page } from './shapes.js'

/** How many held jobs are listed by default. */
const defaultHeld = 50

/** Throws `UnsupportedByStoreError` if the store keeps no registry. */
async function registryOf({ adminParts, store }: Mill): Promise<WorkerRegistry> {
  const { workers } = await adminParts.look()
  if (workers !== undefined) return workers
  throw new UnsupportedByStoreError(store.text, 'a registry of workers', 'Look at the logs of their processes.')
}

function stopEndpoint(signal: WorkerSignal, summary: string) {
  return endpoint({
    method: 'POST',
    path: `/workers/:id/${signal}`,
    summary,
    action: `worker.${signal}`,
    body: nothing,
    answer: changed,
    run: async ({ window: { mill }, params: { id = '' } }) => {
      if (await mill.stopWorker(id, { recycle: signal === 'recycle' })) return { changed: 1, more: false }
      throw new WebRefusal('not-found', `no live worker has the id '${id}': \`GET workers\` lists the live ones.`)
    },
  })
}

export const workerEndpoints = [
  endpoint({
    method: 'GET',
    path: '/workers',
    summary: 'The workers that reported lately',
    answer: page,
    run: async ({ window: { mill } }) => {
      const workers = await (await registryOf(mill)).list()
      const here = processIdentity()
      return { items: workers.map((worker) => workerRow(worker, here)) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/workers/:id/jobs',
    summary: 'The jobs that a worker has in hand, oldest first; `more`: it has more of them',
    query: { limit },
    answer: page,
    run: async ({ window, params: { id = '' }, query: { limit: most = defaultHeld } }) => {
      const held = await (await registryOf(window.mill)).held(id)
      return { items: held.slice(0, most).map((claim) => heldRow(claim, window)), more: held.length > most }
    },
  }),
  stopEndpoint('stop', 'Have a worker finish its jobs and stop'),
  stopEndpoint('recycle', 'Have a worker stop, and a fresh one take its place'),
]

/** A worker, with whether its process lives. `here`: the process that looks. */
export function workerRow(worker: SeenWorker, here: ProcessIdentity) {
  const { startedAt, seenAt, silentMs: _, concurrency, ...rest } = worker
  return {
    ...rest,
    process: livenessOf(worker, here),
    slots: concurrency,
    startedAt: new Date(startedAt),
    seenAt: new Date(seenAt),
  }
}

/**
 * A job that a worker holds; without `startedAt` it is only reserved. `host` and `pid`: where it runs, if not in the
 * worker's process.
 */
function heldRow({ queue, id, task, startedAt, progress, host, pid }: HeldClaim, window: MillWindow) {
  return {
    ...{ queue, id, task },
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...defined({ progress: window.shownProgress(progress) }),
    ...(pid !== undefined && { host, pid }),
  }
}
