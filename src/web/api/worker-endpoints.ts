/** The endpoints of workers: where they run, what they serve, and how they are told to stop. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import { processIdentity } from '../../runtime/process-identity.js'
import type { WorkerOrder } from '../../stores/contract/worker-registry.js'
import { WebRefusal } from '../refusal.js'
import { workerRow } from '../state/worker-row.js'
import { endpoint } from './endpoint.js'
import { changed, nothing, page } from './shapes.js'

function orderEndpoint(order: WorkerOrder, summary: string) {
  return endpoint({
    method: 'POST',
    path: `/workers/:id/${order}`,
    summary,
    action: `worker.${order}`,
    body: nothing,
    answer: changed,
    run: async ({ window: { mill }, params: { id = '' } }) => {
      if (await mill.orderWorker(id, order)) return { changed: 1, more: false }
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
      const workers = await mill.workers()
      if (workers === undefined)
        throw new UnsupportedByStoreError(
          mill.store.text,
          'a registry of workers',
          'Look at the logs of their processes.',
        )
      const here = processIdentity()
      return { items: workers.map((worker) => workerRow(worker, here)) }
    },
  }),
  orderEndpoint('stop', 'Tell a worker to finish its jobs and stop'),
  orderEndpoint('recycle', 'Tell a worker to stop, so that a fresh one takes its place'),
]
