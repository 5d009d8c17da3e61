/** A running job: the view of a plain task's claim that a handler receives. */

import type { Meta, RunningJob } from '../../core/job.js'
import { ownError } from '../../core/job-failures.js'
import { originIn, ownMeta } from '../../core/job-origin.js'
import { type AnyTask, isNameOf } from '../../core/task/any-task.js'
import type { Claim } from '../../stores/contract/claim.js'

/** `stored`: its meta, as it is stored. */
export function runningJob(claim: Claim, task: AnyTask, stored: Meta): RunningJob {
  return {
    id: claim.id,
    // With a task that runs any job, the job keeps its own name.
    task: isNameOf(task, claim.task) ? task.name : claim.task,
    queue: claim.queue,
    priority: claim.priority,
    ...(claim.group === undefined ? {} : { group: claim.group }),
    attempt: claim.attempt,
    crashes: claim.crashes,
    fence: claim.fence,
    meta: ownMeta(stored),
    ...originIn(stored, claim),
    createdAt: new Date(claim.createdAt),
    runAt: new Date(claim.runAt),
    ...(claim.expiresAt === undefined ? {} : { expiresAt: new Date(claim.expiresAt) }),
    ...(claim.error === undefined ? {} : { lastError: ownError(claim.error) }),
  }
}
