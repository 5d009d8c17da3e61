/** The endpoints of workers: where they run, what they serve, and how they are told to stop. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Mill } from '../../mill/mill.js'
import { livenessOf } from '../../runtime/liveness.js'
import { processIdentity } from '../../runtime/process-identity.js'
import type { WorkerRecord } from '../../stores/contract/worker-registry.js'
import { WebRefusal } from '../refusal.js'
import { endpoint } from './endpoint.js'
import { changed, nothing, page } from './shapes.js'

/** Throws `UnsupportedByStoreError` where the store keeps no registry. */
async function workersOf(mill: Mill): Promise<readonly (WorkerRecord & { readonly seenAt: number })[]> {
  const workers = await mill.workers()
  if (workers === undefined)
    throw new UnsupportedByStoreError(mill.store.text, 'a registry of workers', 'Look at the logs of their processes.')
  return workers
}

/** The part of a registry by which a worker is told something at its next beat. */
interface WorkerOrders {
  order(id: string, order: 'stop' | 'recycle'): Promise<boolean>
}

function orderEndpoint(how: 'stop' | 'recycle', summary: string) {
  return endpoint({
    method: 'POST',
    path: `/workers/:id/${how}`,
    summary,
    action: `worker.${how}`,
    body: nothing,
    answer: changed,
    run: async ({ window: { mill }, params: { id = '' } }) => {
      const workers = await workersOf(mill)
      const { traits, workers: registry } = await mill.adminParts.connect()
      const orders = registry as Partial<WorkerOrders> | undefined
      if (workers.some((worker) => worker.id === id)) {
        if (orders?.order === undefined)
          throw new UnsupportedByStoreError(traits.name, `telling a worker to ${how}`, 'Send its process a signal.')
        if (await orders.order(id, how)) return { changed: 1, more: false }
      }
      throw new WebRefusal('not-found', `no worker '${id}' lives: \`GET workers\` tells which do.`)
    },
  })
}

export const workerEndpoints = [
  endpoint({
    method: 'GET',
    path: '/workers',
    summary: 'The workers that said lately that they live',
    answer: page,
    run: async ({ window: { mill } }) => {
      const here = processIdentity()
      const items = (await workersOf(mill)).map(({ startedAt, seenAt, concurrency, ...worker }) => ({
        ...worker,
        process: livenessOf({ ...worker, startedAt, concurrency }, here),
        slots: concurrency,
        startedAt: new Date(startedAt),
        seenAt: new Date(seenAt),
      }))
      return { items }
    },
  }),
  orderEndpoint('stop', 'Tell a worker to finish its jobs and stop'),
  orderEndpoint('recycle', 'Tell a worker to stop, so that a fresh one takes its place'),
]
