/** The job record as users see it, made from the store's. */

import type { Codec } from '../core/codec.js'
import type { JobRecord, Meta } from '../core/job.js'
import type { StoredJob } from '../stores/job-records.js'

/** Fields that cannot be decoded are left out; `error` then says why. */
export function recordOf(job: StoredJob, codec: Codec): JobRecord {
  const problems: string[] = []
  const decoded = (what: string, payload: StoredJob['payload'] | undefined, codecName = 'json'): unknown => {
    if (payload === undefined || payload.length === 0) return undefined
    if (codecName !== codec.name) {
      problems.push(`${what} was encoded by codec '${codecName}', this mill has '${codec.name}'`)
      return undefined
    }
    try {
      return codec.decode(payload)
    } catch (error) {
      problems.push(`${what} cannot be decoded: ${(error as Error).message}`)
      return undefined
    }
  }
  const input = decoded('input', job.payload, job.codec)
  const meta = decoded('meta', job.meta, job.codec) as Meta | undefined
  const result = decoded('result', job.result?.payload, job.result?.codec)
  const error = [job.error, ...problems].filter((text) => text !== undefined).join('\n')
  const record: { -readonly [K in keyof JobRecord]?: JobRecord[K] } = {
    id: job.id,
    task: job.task,
    queue: job.queue,
    state: job.state,
    input,
    meta,
    priority: job.priority,
    group: job.group,
    attempt: job.attempt,
    crashes: job.crashes,
    suspect: job.suspect,
    createdAt: new Date(job.createdAt),
    updatedAt: new Date(job.updatedAt),
    runAt: new Date(job.runAt),
    startedAt: dateOf(job.startedAt),
    finishedAt: dateOf(job.finishedAt),
    host: job.host,
    pid: job.pid,
    progress: job.progress,
    result,
    error: error === '' ? undefined : error,
    reason: job.reason,
  }
  for (const key of Object.keys(record) as (keyof JobRecord)[]) if (record[key] === undefined) delete record[key]
  return record as JobRecord
}

function dateOf(at: number | undefined): Date | undefined {
  return at === undefined ? undefined : new Date(at)
}
