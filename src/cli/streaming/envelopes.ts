/** Envelopes: the waiting jobs of a queue, one per line, with everything that another mill needs to enqueue them. */

import { type ListFilter, listFilterOf } from '../../client/admin/job-filter.js'
import { lookInto, noJobs } from '../../client/admin/queue-looks.js'
import { recordOf } from '../../client/jobs/job-record.js'
import { recordsOf } from '../../client/store-facets.js'
import type { JobMeta, JobRecord } from '../../core/job/job.js'
import { jsonCodec } from '../../core/values/codec.js'
import { pagesOf } from '../../core/values/pages.js'
import type { Mill } from '../../mill/mill.js'
import type { StoredJob } from '../../stores/contract/job-records.js'

type WaitingState = 'waiting' | 'scheduled' | 'ready'

/** A job that waits. `stays`: why it should end in its own store; absent: it can move. */
interface ExportedJob {
  readonly job: JobRecord
  readonly stays?: string
}

const perPage = 200

/**
 * The jobs page by page, in the order in which they will run. A job that changes meanwhile may appear twice or not at
 * all. Throws `InvalidArgumentError` for a wrong filter.
 */
export async function* waitingJobs(
  mill: Mill,
  queue: string,
  states: readonly WaitingState[],
  filter: ListFilter,
): AsyncGenerator<ExportedJob[]> {
  const { look, packing } = mill.adminParts
  const records = recordsOf(await look())
  const shown = (job: StoredJob) => recordOf(job, packing)
  const { matches, ...ofGroup } = listFilterOf(filter, { shown, isRedacted: false })
  for (const state of states) {
    const query = { state, by: 'time', limit: perPage, ...ofGroup } as const
    const read = (from: { readonly cursor?: string }) =>
      lookInto(mill.queues.has(queue), () => records.list(queue, { ...query, ...from }), noJobs)
    for await (const { jobs } of pagesOf(read))
      yield await Promise.all(
        jobs.filter(matches).map(async (job) => {
          const stays = whyStays(job)
          return stays === undefined ? { job: await whole(mill, shown(job)) } : { job: shown(job), stays }
        }),
      )
  }
}

/** Why the job should end in its own store: what it has done, or what waits with it, does not move. Pure. */
function whyStays(job: StoredJob): string | undefined {
  if (job.awaits !== undefined) return `waits for signal '${job.awaits.signal}'`
  if (job.isJoin) return job.state === 'waiting' ? 'waits for other jobs' : 'has waited for other jobs'
  if (job.memberOf !== undefined) return 'is waited for by another job'
  return job.hasSteps ? 'has steps, sleeps or signals' : undefined
}

/** The job with all payloads; a listing has only the first ones. */
async function whole(mill: Mill, job: JobRecord): Promise<JobRecord> {
  const { payloads, payloadCount = 0 } = job
  if (payloads === undefined || payloads.length === payloadCount) return job
  return (await mill.queue(job.queue).jobs.get(job.id)) ?? job
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
