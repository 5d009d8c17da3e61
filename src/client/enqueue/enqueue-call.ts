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

/** A call, with the place of each of its jobs among all jobs of the enqueue. */
export interface PlacedCall {
  readonly call: EnqueueCall
  readonly places: readonly number[]
}

interface OpenPlacedCall extends PlacedCall {
  readonly call: OpenCall
  readonly places: number[]
  bytes: number
}

/**
 * Packs drafts into calls: by queue, with a limit of jobs and bytes for each. It keeps no draft: those of thousands of
 * jobs would outlive several collections of garbage, which would take longer than the drafting.
 */
export class CallPacker {
  readonly calls: PlacedCall[] = []
  readonly #open = new Map<string, OpenPlacedCall>()
  readonly #rules: DraftRules
  #last: OpenPlacedCall | undefined

  constructor(rules: DraftRules) {
    this.#rules = rules
  }

  /** Adds the draft of the job at this place. */
  add(draft: JobDraft, place: number): void {
    const { queue, job, bytes } = draft
    const open = this.#last?.call.queue === queue ? this.#last : this.#open.get(queue)
    const { maxBatch } = this.#rules.traits
    if (open === undefined || open.places.length >= maxBatch || open.bytes + bytes > mostBytes) {
      this.#last = { call: callOf(draft, this.#rules), places: [place], bytes }
      this.#open.set(queue, this.#last)
      this.calls.push(this.#last)
      return
    }
    open.call.jobs.push(job)
    open.call.hasNewIds &&= draft.isIdNew
    open.places.push(place)
    open.bytes += bytes
    this.#last = open
  }
}
