/** A job draft: one job on its way in, checked and encoded, not yet sent. */

import { UnknownTaskError } from '../../core/errors.js'
import type { Registry } from '../../core/registry.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import { validated } from '../../core/task/schema.js'
import { type AnyTask, isRunElsewhere } from '../../core/task/task.js'
import type { Codec } from '../../core/values/codec.js'
import { formatDuration } from '../../core/values/duration.js'
import type { NewJob } from '../../stores/contract/new-job.js'
import type { StoreTraits } from '../../stores/contract/store.js'
import { nameOf, wrong } from './draft-content.js'
import { checkedOrderedQueue, orderedDraft } from './ordered-draft.js'
import { checkedPlainQueue, plainDraft } from './plain-draft.js'

export interface JobDraft {
  readonly queue: string
  readonly job: NewJob
  readonly bytes: number
  /** Whether its id was made for it alone, and names nothing else. */
  readonly isIdNew: boolean
}

export interface DraftRules {
  readonly registry: Registry
  /** Names of tasks that only workers elsewhere know. */
  readonly tasksElsewhere: readonly string[]
  readonly codec: Codec
  readonly traits: StoreTraits
  readonly maxPayloadBytes: number
  readonly idempotencyMs: number
  readonly newId: () => string
}

/**
 * Checks and encodes one job; a promise only where its task has a schema. Throws `UnknownTaskError`, `InvalidJobError`,
 * `PayloadTooLargeError`, `UnknownQueueError` or `UnsupportedByStoreError`; nothing was stored then.
 */
export function draftJob({ task, input, options }: EnqueueItem, rules: DraftRules): JobDraft | Promise<JobDraft> {
  refuseUnknown(task, rules)
  const {
    name: queue,
    renewLease,
    leaseMs,
  } = task.kind === 'ordered' ? checkedOrderedQueue(task, options, rules) : checkedPlainQueue(task, options, rules)
  if (!renewLease && task.timeLimitMs >= leaseMs && rules.registry.find(task.name) === task)
    throw wrong(
      task,
      `its time limit (${formatDuration(task.timeLimitMs)}) is not less than the lease of queue '${queue}' (${formatDuration(leaseMs)}), which is not renewed: it would never be run. Use another queue, or a longer lease.`,
    )
  // What is stored is the input as given: transforms belong to the worker's side, where the schema is applied again.
  const draft = () =>
    task.kind === 'ordered' ? orderedDraft(task, input, options, rules) : plainDraft(task, input, options, queue, rules)
  return task.input === undefined ? draft() : validated(task.input, input, `the input of a ${nameOf(task)}`).then(draft)
}

/** A worker of this mill would put its jobs back for ever. */
function refuseUnknown(task: AnyTask, { registry, tasksElsewhere }: DraftRules): void {
  if (registry.find(task.name) !== undefined || tasksElsewhere.includes(task.name) || isRunElsewhere(task)) return
  throw new UnknownTaskError(task.name, [...registry.tasks.keys()])
}
