/** Envelopes: the waiting jobs of a queue, one per line, with everything that another mill needs to enqueue them. */

import type { QueueAdmin } from '../../client/admin/queue-admin.js'
import type { JobMeta, JobRecord } from '../../core/job/job.js'
import { jsonCodec } from '../../core/values/codec.js'
import { pagesOf } from '../../core/values/pages.js'

type WaitingState = 'ready' | 'scheduled'

const perPage = 200

/**
 * The jobs page by page, in the order in which they will run. A job that changes meanwhile may appear twice or not at
 * all.
 */
export async function* waitingJobs(queue: QueueAdmin, states: readonly WaitingState[]): AsyncGenerator<JobRecord[]> {
  for (const state of states)
    for await (const { jobs } of pagesOf((from) => queue.jobs.list({ state, by: 'time', limit: perPage, ...from })))
      yield await Promise.all(jobs.map((job) => whole(queue, job)))
}

/** The job with all payloads; a listing has only the first ones. */
async function whole(queue: QueueAdmin, job: JobRecord): Promise<JobRecord> {
  const { payloads, payloadCount = 0 } = job
  if (payloads === undefined || payloads.length === payloadCount) return job
  return (await queue.jobs.get(job.id)) ?? job
}

/**
 * Undefined if the job cannot be written in full: an input cannot be decoded, or more payloads wait than can be read.
 * Pure.
 */
export function envelopeOf(job: JobRecord): object | undefined {
  const { task, queue, id, state, payloads, payloadCount, meta, priority, group, runAt, expiresAt } = job
  const due = state === 'scheduled' ? { runAt: runAt.toISOString() } : {}
  const header = { task, queue, id, state, ...due, ...(expiresAt && { expiresAt: expiresAt.toISOString() }) }
  if (payloads === undefined) {
    if (!('input' in job) && isUndecoded(job.error)) return undefined
    const input = packedInput(job.input)
    return {
      ...header,
      input,
      ...metaOf(meta),
      ...(priority !== 0 && { priority }),
      ...(group !== undefined && { group }),
    }
  }
  if (payloads.length !== payloadCount || payloads.some((payload) => !('input' in payload))) return undefined
  return {
    ...header,
    payloads: payloads.map((payload) => ({
      input: packedInput(payload.input),
      score: payload.score,
      ...metaOf(payload.meta),
    })),
  }
}

/** Whether decoding failed. An absent input alone does not say so, because the input may be undefined. */
function isUndecoded(error = ''): boolean {
  return /^input (?:was |cannot be decoded)/m.test(error)
}

function metaOf(meta: JobMeta | undefined): { meta?: unknown } {
  return meta === undefined || Object.keys(meta).length === 0 ? {} : { meta: packedInput(meta) }
}

/** The value as JSON, in which the codec has wrapped values that JSON lacks. */
export function packedInput(value: unknown): unknown {
  return JSON.parse(jsonCodec.encode(value) as string)
}
