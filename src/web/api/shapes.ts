/** The shapes of the API's requests and answers: one source for the check of a request and for its description. */

import * as v from 'valibot'
import { highestPriority, jobStates, lowestPriority } from '../../core/job/job.js'
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

/** The parts of a filter in the query of a list. */
export const listFilter = {
  group: v.exactOptional(v.pipe(v.string(), v.maxLength(256))),
  error: v.exactOptional(v.pipe(v.string(), v.maxLength(2_000))),
  from: v.exactOptional(instant),
  to: v.exactOptional(instant),
}

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

const byId = { ids, reason }
const byAll = { all: v.literal(true), confirm: v.string(), reason }
const byFailed = { failed: v.literal(true), confirm: v.string(), reason }

/** A choice of jobs: by id, all, or those that failed. For all or failed jobs the queue's name confirms it. */
export const choice = v.pipe(
  exactly({ ids: v.exactOptional(ids), all: isTrue, failed: isTrue, confirm, reason }),
  v.check(
    ({ ids, all, failed }) => [ids, all, failed].filter((one) => one !== undefined).length === 1,
    "say which jobs: either `ids`, or `all: true` or `failed: true` with `confirm`: the queue's name",
  ),
  v.metadata({ anyOf: [exactly(byId), exactly(byAll), exactly(byFailed)] }),
)

export type Choice = v.InferOutput<typeof choice>

/** A choice of dead jobs, all of which have failed. */
function deadChoiceWith<E extends v.ObjectEntries>(more: E) {
  return v.pipe(
    exactly({ ids: v.exactOptional(ids), all: isTrue, confirm, ...more }),
    v.check(
      ({ ids, all }) => (ids === undefined) !== (all === undefined),
      "say which jobs: either `ids`, or `all: true` with `confirm`: the queue's name",
    ),
    v.metadata({ anyOf: [exactly({ ids, ...more }), exactly({ all: v.literal(true), confirm: v.string(), ...more })] }),
  )
}

export const deadChoice = deadChoiceWith({})
export const reviveChoice = deadChoiceWith({ members: v.exactOptional(v.boolean()) })

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

/** A page of a list; `cursor` leads to the next. */
export const page = v.looseObject({ items: v.array(v.looseObject({})), cursor: v.exactOptional(v.string()) })

export const failure = exactly({
  error: exactly({
    code: v.string(),
    message: v.string(),
    fields: v.exactOptional(v.array(exactly({ path: v.string(), message: v.string() }))),
  }),
})
