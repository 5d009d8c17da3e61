/** The retry outlook of a job: how often its task lets it fail, and how long it waits after each further failure. */

import type { JobRecord } from '../../core/job/job.js'
import { type Backoff, delayAfter } from '../../core/task/backoff.js'
import type { Mill } from '../../mill/mill.js'

interface RetryOutlook {
  /** Failures after which it is tried again. */
  readonly max: number
  /** For each of the next failures, at most 10: the shortest and the longest delay that may follow, in ms. */
  readonly delays: readonly { readonly leastMs: number; readonly mostMs: number }[]
}

const mostDelays = 10
/** About the highest value of `random()`. */
const highest = 1 - 2 ** -32

/** Undefined if this mill does not declare its task: only workers elsewhere know it. */
export function retryOutlook({ adminParts: { registry } }: Mill, job: JobRecord): RetryOutlook | undefined {
  const task = registry?.orderedTask(job.queue) ?? registry?.find(job.task)
  if (task === undefined) return undefined
  const { max, backoff } = task.retry
  const left = Math.max(0, max + 1 - job.attempt)
  const failures = Array.from({ length: Math.min(left, mostDelays) }, (_, i) => job.attempt + i)
  return { max, delays: delaysAfter(backoff, failures) }
}

/** Empty if the backoff is the user's own, and throws. */
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
