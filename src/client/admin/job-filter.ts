/** A job filter: a choice of jobs by what they are; and the steps of an action on the jobs that it chooses. */

import { InvalidArgumentError } from '../../core/errors.js'
import { type JobRecord, type JobState, jobStates, stateHint } from '../../core/job/job.js'
import { ownError } from '../../core/job/job-failures.js'
import type { JobFields } from '../../core/job/job-fields.js'
import { describe } from '../../core/messages/describe.js'
import { errorKind } from '../../core/messages/error-kind.js'
import { type AnyTask, isNameOf, refuseNoTask } from '../../core/task/any-task.js'
import { callForms, callOptions } from '../../core/values/call-check.js'
import { defined } from '../../core/values/defined.js'
import { groupMistake, groupNameOf } from '../../core/values/ids.js'
import { instantMistake, parseInstant } from '../../core/values/instant.js'
import { recordJson } from '../../core/values/json.js'
import type { Page, Step, StoredJob } from '../../stores/contract/job-records.js'
import { politely } from './step-loop.js'

/** The conditions on a job. All that are given must hold, and at least one must be given. */
export interface JobFilter {
  /** Only jobs of this group. `''`: those without one. */
  readonly group?: string | number | undefined
  /** Only jobs of this task: the task, or its name as it is stored. */
  readonly task?: AnyTask | string | undefined
  /** Only jobs that have these fields with these values. */
  readonly fields?: JobFields | undefined
  /**
   * Only jobs whose last error is of the kind of this one: ids and numbers in its first line may differ. Dead jobs without
   * an error: their reason.
   */
  readonly error?: string | undefined
  /**
   * Only jobs that have this text, 1 to 1,000 characters, in their id, task, group, a field as `name=value`, or their input as
   * JSON, as records print it; upper and lower case are alike. An input that this mill cannot decode has none. Of an ordered
   * job the first ten payloads count. It reads every input of the queue, so it takes longer than the other conditions.
   */
  readonly text?: string | undefined
  /** Only jobs in this state. Default: every state that the call is about. */
  readonly state?: JobState | undefined
  /** Only jobs that were enqueued at this moment or later. */
  readonly from?: Date | string | undefined
  /** Only jobs that were enqueued before this moment. */
  readonly to?: Date | string | undefined
}

/** The parts of a filter that a list takes besides its own options. */
export type ListFilter = Omit<JobFilter, 'task' | 'state'>

/** The forms of a filter's options, for the check of a call. */
export const filterForms = {
  ...{ group: callForms.own, fields: callForms.own, error: callForms.text, text: callForms.text },
  ...{ from: callForms.own, to: callForms.own },
} as const

const checkFilter = callOptions('where', { ...filterForms, task: callForms.own, state: callForms.own })

type Matches = (job: StoredJob) => boolean

/** The part of the jobs that the caller may see. */
export interface ShownJobs {
  /** The record of a job, as far as the caller may see it: a text is looked for in nothing else. */
  readonly shown: (job: StoredJob) => JobRecord
  /** Whether more than payloads may differ in it: every condition but task and state then reads it, at the cost of decoding. */
  readonly isRedacted: boolean
}

/** A filter as it is applied. */
interface CheckedFilter {
  readonly matches: Matches
  /** The group, if it names one: the store lists no others. */
  readonly group?: string
}

/** Throws `InvalidArgumentError` for a filter that says nothing, or something wrong. */
export function filterOf(where: JobFilter, view: ShownJobs): CheckedFilter & { readonly state?: JobState } {
  checkFilter(where)
  const { task, state, ...listed } = where
  if (Object.values(where).every((value) => value === undefined))
    throw new InvalidArgumentError("a filter must say something, such as { group: 'acme' }; for all jobs say 'all'.")
  if (state !== undefined && !jobStates.includes(state))
    throw new InvalidArgumentError(
      `where({ state }) must be one of ${jobStates.join(', ')}; got ${describe(state)}.${stateHint(state)}`,
    )
  if (task !== undefined && typeof task !== 'string') refuseNoTask(task, 'where({ task })')
  const isOfTask: Matches = ({ task: name }) =>
    task === undefined || (typeof task === 'string' ? task === name : isNameOf(task, name))
  const rest = listFilterOf(listed, view)
  return { ...rest, ...defined({ state }), matches: (job) => isOfTask(job) && rest.matches(job) }
}

/** Throws `InvalidArgumentError`. */
export function listFilterOf(
  { group, fields, error, text, from, to }: ListFilter,
  { shown, isRedacted }: ShownJobs,
): CheckedFilter {
  const name = group === undefined ? undefined : groupNameOf(group)
  if (group !== undefined && name === undefined) throw new InvalidArgumentError(`group ${groupMistake(group)}`)
  if (fields !== undefined && (typeof fields !== 'object' || fields === null || Array.isArray(fields)))
    throw new InvalidArgumentError(`fields must be an object of names and values; got ${describe(fields)}.`)
  const wanted = Object.entries(fields ?? {})
  const kind = error === undefined ? undefined : errorKind(error)
  const sought = text === undefined ? undefined : checkedText(text)
  const [fromAt, toAt] = [momentOf(from, 'from'), momentOf(to, 'to')]
  const isRecordRead = isRedacted && [name, fields, kind, fromAt, toAt, sought].some((value) => value !== undefined)
  const matches: Matches = (stored) => {
    const record = isRecordRead ? shown(stored) : undefined
    const job = record ?? stored
    return (
      (name === undefined || (job.group ?? '') === name) &&
      wanted.every(([field, value]) => job.fields?.[field] === value) &&
      (kind === undefined || kindOf(job) === kind) &&
      (fromAt === undefined || Number(job.createdAt) >= fromAt) &&
      (toAt === undefined || Number(job.createdAt) < toAt) &&
      (sought === undefined || hasText(record ?? shown(stored), sought))
    )
  }
  // A store knows the groups as they are.
  return { matches, ...(name && !isRedacted ? { group: name } : {}) }
}

const longestText = 1_000

/** The text as it is compared. Throws `InvalidArgumentError`. */
function checkedText(text: string): string {
  if (text !== '' && text.length <= longestText) return text.toLowerCase()
  throw new InvalidArgumentError(`text must have 1 to 1,000 characters; got ${text.length}.`)
}

function hasText({ id, task, group, fields = {}, input, payloads = [] }: JobRecord, text: string): boolean {
  const has = (part: string | undefined) => part?.toLowerCase().includes(text) === true
  const isIn = (value: unknown) => value !== undefined && has(recordJson(value))
  if (has(id) || has(task) || has(group) || isIn(input)) return true
  if (Object.entries(fields).some(([name, value]) => has(`${name}=${value}`))) return true
  return payloads.some(({ input: one }) => isIn(one))
}

function kindOf({ error, reason }: Pick<StoredJob, 'error' | 'reason'>): string | undefined {
  const text = error === undefined ? reason : ownError(error)
  return text === undefined ? undefined : errorKind(text)
}

function momentOf(given: unknown, name: string): number | undefined {
  if (given === undefined) return undefined
  const at = parseInstant(given)
  if (at === undefined) throw new InvalidArgumentError(`${name} ${instantMistake(given)}; got ${describe(given)}.`)
  return at
}

/** The jobs that one step looks at, and changes: few, because a change holds up a Redis or the writers of an SQLite file. */
const pageSize = 50
/** The jobs that are changed at once while others wait for the store. */
const politeSize = 5

/** An action on jobs that are found by their states, and perhaps by their group. */
export interface FilteredAction {
  /** The states of the jobs that the action changes; a job that moves on meanwhile is met in a later one. */
  readonly states: readonly JobState[]
  readonly matches: Matches
  readonly group?: string
  readonly list: (query: {
    state: JobState
    by: 'time'
    group?: string
    limit: number
    cursor?: string
  }) => Promise<Page>
  readonly act: (ids: readonly string[]) => Promise<Step>
}

/** The steps of an action on the jobs that a filter chooses. */
export interface FilteredSteps {
  /** Takes the next step, one page; call it until `more` is false. */
  readonly step: () => Promise<Step>
  /** Where the steps of another call go on; undefined: there is nothing left. */
  readonly cursor: () => string | undefined
}

/**
 * The steps of an action on chosen jobs, one page each, in the order of time: of a queue on Redis no key is ordered by id, and
 * each page of a listing by id reads all of them. Jobs that are enqueued meanwhile may be passed over. `from`: the
 * cursor at which the same action was left. The store, or this, throws `InvalidArgumentError` for another text.
 */
export function filteredSteps({ states, matches, group, list, act }: FilteredAction, from?: string): FilteredSteps {
  let { left, cursor } = from === undefined ? { left: states, cursor: undefined } : placeIn(from, states)
  let size = pageSize
  return {
    cursor: () => (left.length === 0 ? undefined : `${left[0]}/${cursor ?? ''}`),
    step: async () => {
      const [state] = left
      if (state === undefined) return { changed: 0, more: false }
      const page = await list({ state, by: 'time', limit: pageSize, ...defined({ group, cursor }) })
      const ids = page.jobs.filter(matches).map(({ id }) => id)
      let changed = 0
      for (let at = 0; at < ids.length; ) {
        const some = ids.slice(at, at + size)
        const step = await politely(() => act(some))
        changed += step.changed
        if (!step.more) at += size
        size = step.isAwaited === true ? politeSize : pageSize
      }
      cursor = page.cursor
      if (cursor === undefined) left = left.slice(1)
      return { changed, more: left.length > 0 }
    },
  }
}

/** The place in a cursor: the states that are left, and the cursor of the list of the first of them. */
function placeIn(
  text: string,
  states: readonly JobState[],
): { readonly left: readonly JobState[]; readonly cursor: string | undefined } {
  const end = text.indexOf('/')
  const at = states.indexOf(text.slice(0, end) as JobState)
  if (at < 0) throw new InvalidArgumentError('the cursor is not one that this action gave. Nothing was changed.')
  return { left: states.slice(at), cursor: text.slice(end + 1) || undefined }
}
