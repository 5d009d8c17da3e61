/** The shapes of the API's requests and answers: one source for the check of a request and for its description. */

import * as v from 'valibot'
import { highestPriority, jobStates, lowestPriority } from '../../core/job/job.js'
import type { JobFields } from '../../core/job/job-fields.js'
import { durationForm, parseDuration } from '../../core/values/duration.js'
import {
  groupForm,
  groupNameOf,
  isJobId,
  isQueueName,
  isTaskName,
  jobIdForm,
  queueNameForm,
  taskNameForm,
} from '../../core/values/ids.js'
import { exactJson } from '../../core/values/json.js'
import { anyRecord, exactly, whole } from '../../core/values/option-check.js'

/** The description of a shape, if its check alone does not give it. */
interface Described {
  readonly json: Readonly<Record<string, unknown>>
}

function described<S extends v.GenericSchema>(schema: S, json: Described['json']) {
  return v.pipe(schema, v.metadata({ json }))
}

function text(isText: (value: unknown) => boolean, form: string, json: Described['json']) {
  return described(v.custom<string>(isText, `must be ${form}`), { type: 'string', ...json })
}

export const queueName = text(isQueueName, queueNameForm, { pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$' })
export const jobId = text(isJobId, jobIdForm, { minLength: 1, maxLength: 256 })
export const taskName = text(isTaskName, taskNameForm, { minLength: 1, maxLength: 200 })
export const stepName = text(
  (value) => typeof value === 'string' && value.length >= 1 && value.length <= 200,
  'a text of 1 to 200 characters',
  { minLength: 1, maxLength: 200 },
)
export const group = text((value) => typeof value === 'string' && groupNameOf(value) !== undefined, groupForm, {
  maxLength: 256,
})

/** The shapes of names in addresses. */
export const paramShapes: Readonly<Record<string, v.GenericSchema<unknown, string>>> = {
  queue: queueName,
  name: queueName,
  id: jobId,
}

/**
 * Replaces an id in a path; the id is then in the query. For ids such as `.` and `..`, and ids that a proxy rewrites.
 */
export const idInQuery = '~'

const durationJson = {
  oneOf: [
    { type: 'string', examples: ['5m'] },
    { type: 'integer', minimum: 0 },
  ],
}

/** A duration such as `'5m'`, or a number of ms. */
export const duration = described(
  v.custom<number | string>((value) => parseDuration(value) !== undefined, `must be ${durationForm}`),
  durationJson,
)

/** A duration, or `'never'`. */
const expiry = described(
  v.custom<number | string>(
    (value) => value === 'never' || parseDuration(value) !== undefined,
    `must be ${durationForm}, or 'never'`,
  ),
  durationJson,
)

/** An instant in text, with its zone. */
export const instant = text(
  (value) => typeof value === 'string' && value.length <= 64 && !Number.isNaN(Date.parse(value)),
  'an instant such as 2026-12-24T18:00:00Z',
  { format: 'date-time' },
)

/** A whole number in a query. */
export function wholeText(least: number, most: number) {
  const form = `must be a whole number from ${least} to ${most}`
  const schema = v.pipe(v.string(form), v.regex(/^\d{1,15}$/, form), v.transform(Number), whole(least, most))
  return described(schema, { type: 'integer', minimum: least, maximum: most })
}

export const limit = v.exactOptional(wholeText(1, 200))
export const cursor = v.exactOptional(v.pipe(v.string(), v.maxLength(2_000, 'must be what a page before gave')))
export const state = v.exactOptional(v.picklist(jobStates))

const fieldValueJson = { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] }

/** Fields with the values that a job must have. */
const fields = described(
  v.custom<JobFields>(
    (value) => typeof value === 'object' && value !== null && Object.values(value).every(isFieldValue),
    'must be fields and their values: texts, numbers, true or false',
  ),
  { type: 'object', additionalProperties: fieldValueJson },
)

function isFieldValue(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/** The same in a query. */
const fieldsText = described(
  v.pipe(
    v.string(),
    v.maxLength(2_000),
    v.rawTransform(({ dataset, addIssue, NEVER }): unknown => {
      try {
        return exactJson(dataset.value)
      } catch {
        addIssue({ message: 'must be an object in JSON, as {"order":4711}' })
        return NEVER
      }
    }),
    fields,
  ),
  { type: 'string', examples: ['{"order":4711}'] },
)

/** The conditions that a filter has in a query and in a body alike. */
const filterParts = {
  group: v.exactOptional(v.pipe(v.string(), v.maxLength(256))),
  error: v.exactOptional(v.pipe(v.string(), v.maxLength(2_000))),
  text: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.maxLength(1_000))),
  from: v.exactOptional(instant),
  to: v.exactOptional(instant),
}

/** The parts of a filter in the query of a list. */
export const listFilter = { ...filterParts, fields: v.exactOptional(fieldsText) }

/** The filter of an action. */
const where = exactly({
  ...{ task: v.exactOptional(taskName), state, fields: v.exactOptional(fields) },
  ...filterParts,
})

/** The most jobs that one request may name or enqueue. */
export const mostJobs = 1_000

const ids = v.pipe(
  v.array(jobId),
  v.minLength(1, 'must name a job'),
  v.maxLength(mostJobs, `must name at most ${mostJobs} jobs`),
)
export const reason = v.exactOptional(v.pipe(v.string(), v.maxLength(1_000, 'must have at most 1,000 characters')))
const isTrue = v.exactOptional(v.literal(true))
const confirm = v.exactOptional(v.string())

const byFilter = { where, confirm: v.string(), cursor }
const byAll = { all: v.literal(true), confirm: v.string() }
const byFailed = { failed: v.literal(true), confirm: v.string() }

const cursorMistake = '`cursor` goes with `where`'

/**
 * A choice of jobs: by id, all, those that failed, or those that a filter chooses, from a cursor on. For any but those by id
 * the queue's name confirms it.
 */
export const choice = v.pipe(
  exactly({
    ...{ ids: v.exactOptional(ids), all: isTrue, failed: isTrue, where: v.exactOptional(where) },
    ...{ confirm, cursor, reason },
  }),
  v.check(
    ({ ids, all, failed, where }) => [ids, all, failed, where].filter((one) => one !== undefined).length === 1,
    "say which jobs: either `ids`, or `all: true`, `failed: true` or a filter as `where` with `confirm`: the queue's name",
  ),
  v.check(({ where, cursor }) => where !== undefined || cursor === undefined, cursorMistake),
  v.metadata({ anyOf: [{ ids }, byAll, byFailed, byFilter].map((form) => exactly({ ...form, reason })) }),
)

/** Another place for jobs. */
const place = {
  priority: v.exactOptional(whole(lowestPriority, highestPriority)),
  delay: v.exactOptional(duration),
  runAt: v.exactOptional(instant),
}

export const newPlace = exactly(place)

/** Another place for jobs by id, or for those that a filter chooses. Of all jobs a second request would find the same again. */
export const placeChoice = v.pipe(
  exactly({ ids: v.exactOptional(ids), where: v.exactOptional(where), confirm, cursor, ...place }),
  v.check(
    ({ ids, where }) => (ids === undefined) !== (where === undefined),
    "say which jobs: either `ids`, or a filter as `where` with `confirm`: the queue's name",
  ),
  v.check(({ where, cursor }) => where !== undefined || cursor === undefined, cursorMistake),
  v.metadata({ anyOf: [{ ids }, byFilter].map((form) => exactly({ ...form, ...place })) }),
)

export type Choice = v.InferOutput<typeof choice>

/** The same of dead jobs, all of which have failed. */
function deadChoiceWith<E extends v.ObjectEntries>(more: E) {
  return v.pipe(
    exactly({ ids: v.exactOptional(ids), all: isTrue, where: v.exactOptional(where), confirm, cursor, ...more }),
    v.check(
      ({ ids, all, where }) => [ids, all, where].filter((one) => one !== undefined).length === 1,
      "say which jobs: either `ids`, or `all: true` or a filter as `where` with `confirm`: the queue's name",
    ),
    v.check(({ where, cursor }) => where !== undefined || cursor === undefined, cursorMistake),
    v.metadata({ anyOf: [{ ids }, byAll, byFilter].map((form) => exactly({ ...form, ...more })) }),
  )
}

export const deadChoice = deadChoiceWith({})
export const reviveChoice = deadChoiceWith({
  members: v.exactOptional(v.boolean()),
  input: v.exactOptional(v.unknown()),
})

export const nothing = exactly({})
export const confirmation = exactly({ confirm: v.string() })

const newJob = exactly({
  task: taskName,
  input: v.exactOptional(v.unknown()),
  id: v.exactOptional(jobId),
  ifWaiting: v.exactOptional(v.picklist(['keep', 'replace'])),
  atMost: v.exactOptional(duration),
  idempotency: v.exactOptional(duration),
  delay: v.exactOptional(duration),
  runAt: v.exactOptional(instant),
  expiresIn: v.exactOptional(expiry),
  priority: v.exactOptional(whole(lowestPriority, highestPriority)),
  group: v.exactOptional(group),
  score: v.exactOptional(v.pipe(v.number(), v.finite())),
  meta: v.exactOptional(v.pipe(anyRecord(), v.metadata({ json: { type: 'object', additionalProperties: {} } }))),
  fields: v.exactOptional(fields),
})

export type NewJobBody = v.InferOutput<typeof newJob>

const many = exactly({
  jobs: v.pipe(
    v.array(newJob),
    v.minLength(1, 'must hold a job'),
    v.maxLength(mostJobs, `must hold at most ${mostJobs} jobs`),
  ),
})

/** One job, or many. */
export const newJobs = v.pipe(
  v.lazy(
    (given): v.GenericSchema<unknown, NewJobBody | v.InferOutput<typeof many>> =>
      (typeof given === 'object' && given !== null && 'jobs' in given ? many : newJob) as never,
  ),
  v.metadata({ anyOf: [newJob, many] }),
)

/** The number of changed things, and whether the same request again would find more. */
export const changed = exactly({ changed: whole(0), more: v.boolean() })

const nextCursor = v.exactOptional(v.string())

/** The same of an action on a filter, which goes on at `cursor` while there is one. */
export const changedSome = exactly({ ...changed.entries, cursor: nextCursor })

/** The number of jobs that a filter chooses, as far as they have been counted. */
export const counted = exactly({ count: whole(0), more: v.boolean(), cursor: nextCursor })

/** A page of a list; `cursor` leads to the next. */
export const page = v.looseObject({ items: v.array(v.looseObject({})), cursor: nextCursor })

export const failure = exactly({
  error: exactly({
    code: v.string(),
    message: v.string(),
    fields: v.exactOptional(v.array(exactly({ path: v.string(), message: v.string() }))),
  }),
})
