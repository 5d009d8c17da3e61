/** The retry outlook of a job: how often its task lets it fail, and how long it waits after each failure to come. */

import type { JobRecord } from '../../core/job.js'
import { type Backoff, delayAfter } from '../../core/task/backoff.js'
import type { Mill } from '../../mill/mill.js'

interface RetryOutlook {
  /** Failures after which it is tried again. */
  readonly max: number
  /** Of the next failures, in ms: the shortest and the longest delay that may follow. The first 10. */
  readonly delays: readonly { readonly leastMs: number; readonly mostMs: number }[]
}

const mostDelays = 10
/** What `random()` gives at most, nearly. */
const highest = 1 - 2 ** -32

/** Undefined where this mill does not declare its task: workers elsewhere know it. */
export function retryOutlook({ adminParts: { registry } }: Mill, job: JobRecord): RetryOutlook | undefined {
  const task = registry?.orderedTask(job.queue) ?? registry?.find(job.task)
  if (task === undefined) return undefined
  const { max, backoff } = task.retry
  const left = Math.max(0, max + 1 - job.attempt)
  const failures = Array.from({ length: Math.min(left, mostDelays) }, (_, i) => job.attempt + i)
  return { max, delays: delaysAfter(backoff, failures) }
}

/** None where the backoff is the user's own, and fails. */
function delaysAfter(backoff: Backoff, failures: readonly number[]): RetryOutlook['delays'] {
  try {
    return failures.map((n) => ({
      leastMs: delayAfter(backoff, n, () => 0),
      mostMs: delayAfter(backoff, n, () => highest),
    }))
  } catch {
    return []
  }
}
