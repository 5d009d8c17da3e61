/** The calls of an enqueue: its drafts in the form that a store takes. */

import { listOfOne } from '../../core/values/list-of-one.js'
import type { EnqueueCall, NewJob } from '../../stores/contract/new-job.js'
import type { DraftRules, JobDraft } from './draft-content.js'

/** The most bytes of one call: the limit of stores for one message. */
const mostBytes = 1_048_576

class OpenCall implements EnqueueCall {
  readonly callId: string
  readonly queue: string
  readonly jobs: NewJob[]
  hasNewIds: boolean

  constructor(callId: string, { queue, job, isIdNew }: JobDraft) {
    this.callId = callId
    this.queue = queue
    this.jobs = listOfOne(job)
    this.hasNewIds = isIdNew
  }
}

/** The call for one job, or the first for several. */
export function callOf(draft: JobDraft, { newId }: DraftRules): OpenCall {
  // An id generated for the job also names its call. A user's id may come again, in another call.
  return new OpenCall(draft.isIdNew ? draft.job.id : newId(), draft)
}

/** The drafts as calls: by queue, with a limit of jobs and bytes for each. `at`: the index of each job's draft. */
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
      current.call.hasNewIds &&= draft.isIdNew
      current.at.push(i)
      current.bytes += bytes
    }
  }
  return calls
}
