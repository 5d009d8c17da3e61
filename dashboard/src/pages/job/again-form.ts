/** The again form: a new job's form, filled from an existing job; under a new id unless its queue is ordered. Pure. */

import type { JobForm } from '../queue/job-form.js'
import { isOrdered, type JobDetail } from './job-detail.js'

/** For an ordered job the newest payload: the others existed before it. */
export function againForm(job: JobDetail): Partial<JobForm> {
  const { task, id, priority, group } = job
  if (isOrdered(job)) {
    const newest = job.payloads?.at(-1)
    return { task, id, input: jsonText(newest?.input), ...(newest && { score: String(newest.score) }) }
  }
  return {
    task,
    input: jsonText(job.input),
    ...(priority !== 0 && { priority: String(priority) }),
    ...(group !== undefined && { group }),
  }
}

/** Sent along unchanged. */
export function againMeta(job: JobDetail): Readonly<Record<string, unknown>> | undefined {
  return isOrdered(job) ? job.payloads?.at(-1)?.meta : job.meta
}

function jsonText(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value, undefined, 2)
}
