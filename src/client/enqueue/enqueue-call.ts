/** The calls of an enqueue: its drafts as a store takes them. */

import type { EnqueueCall, NewJob } from '../../stores/contract/new-job.js'
import type { DraftRules, JobDraft } from './draft-content.js'

/** Most bytes of one call: what stores take in one piece. */
const mostBytes = 1_048_576

interface OpenCall extends EnqueueCall {
  readonly jobs: NewJob[]
}

/** The call of one job, or the first of several. */
export function callOf({ queue, job, isIdNew }: JobDraft, { newId }: DraftRules): OpenCall {
  // An id that was made for the job names its call as well; one of the user's may come again, in another call.
  return { callId: isIdNew ? job.id : newId(), queue, jobs: [job] }
}

/** The drafts as calls: by queue, at most so many jobs and bytes in each. `at`: which draft each job was. */
export function callsOf(drafts: readonly JobDraft[], rules: DraftRules): { call: EnqueueCall; at: number[] }[] {
  const calls: { call: OpenCall; at: number[]; bytes: number }[] = []
  const open = new Map<string, (typeof calls)[number]>()
  for (const [i, draft] of drafts.entries()) {
    const { queue, job, bytes } = draft
    const current = open.get(queue)
    if (current === undefined || current.at.length >= rules.traits.maxBatch || current.bytes + bytes > mostBytes) {
      const opened = { call: callOf(draft, rules), at: [i], bytes }
      open.set(queue, opened)
      calls.push(opened)
    } else {
      current.call.jobs.push(job)
      current.at.push(i)
      current.bytes += bytes
    }
  }
  return calls
}
