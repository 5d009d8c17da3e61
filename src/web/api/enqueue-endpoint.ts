/**
 * The endpoint that enqueues one job or many, for programs in any language. A job with an id is enqueued once, however
 * often it is sent.
 */

import { createHash } from 'node:crypto'
import { traceContextOf } from '../../core/job/job-origin.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import { digestId } from '../../core/values/ids.js'
import type { Mill } from '../../mill/mill.js'
import { namedTask } from '../../mill/named-task.js'
import { WebRefusal } from '../failure.js'
import { endpoint } from './endpoint.js'
import { type NewJobBody, newJobs } from './shapes.js'

const keyForm = /^[\x21-\x7e]{1,200}$/

export const enqueueEndpoints = [
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs',
    summary: 'Enqueue up to 1,000 jobs; with the header `idempotency-key`, jobs without an id are enqueued once too',
    action: 'job.enqueue',
    body: newJobs,
    status: 201,
    run: async ({ window: { mill }, asked: { request }, params: { queue = '' }, body }) => {
      const key = request.headers.get('idempotency-key') ?? undefined
      if (key !== undefined && !keyForm.test(key))
        throw new WebRefusal(
          'argument-invalid',
          'the header `idempotency-key` must be 1 to 200 characters of ASCII without spaces.',
        )
      // Refuses an unknown queue even if the body has no jobs.
      mill.queue(queue)
      const jobs = 'jobs' in body ? body.jobs : [body]
      const trace = traceContextOf(request.headers.get('traceparent'), request.headers.get('tracestate'))
      const items = jobs.map((job, i) => ({
        ...itemOf(mill, queue, job, key === undefined ? undefined : keyedId(queue, key, i)),
        ...(trace && { origin: { trace } }),
      }))
      const { children: client } = mill.runParts
      const handles = items.length === 1 ? [await client.enqueueItem(items[0]!)] : await client.enqueueItems(items)
      const stored = handles.map(({ id, outcome }) => ({ id, outcome }))
      return { jobs: stored, changed: stored.filter(({ outcome }) => outcome !== 'duplicate').length }
    },
  }),
]

function itemOf(
  mill: Mill,
  queue: string,
  { task: name, input, ...options }: NewJobBody,
  keyed: string | undefined,
): EnqueueItem {
  const task = namedTask(mill, name, queue)
  const elsewhere = task.queue === queue ? {} : { queue }
  const given = { ...options, ...elsewhere } as AnyEnqueueOptions
  if (keyed === undefined) return { task, input, options: given }
  // An ordered payload belongs to the id that its task or its producer names.
  if (task.kind === 'ordered') return { task, input, options: given, child: keyed }
  return { task, input, options: { id: keyed, ...given } }
}

/** The same id for the same place in a request that is sent again. */
function keyedId(queue: string, key: string, place: number): string {
  return digestId(
    createHash('sha256')
      .update(JSON.stringify([queue, key, place]))
      .digest(),
  )
}
