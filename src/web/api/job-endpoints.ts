/**
 * The endpoints of the jobs of a queue: the enqueue for programs in any language, lists, records, and an operator's
 * actions on one job or many.
 */

import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { PlaceChange } from '../../client/admin/job-place.js'
import { type JobVerb, jobVerbs } from '../../client/admin/operator-verbs.js'
import type { QueueAdmin } from '../../client/admin/queue-admin.js'
import type { ExplainedJob } from '../../client/jobs/explain.js'
import { explained, explainedJob } from '../../client/jobs/wait-facts.js'
import { recordsOf } from '../../client/store-facets.js'
import type { JobRecord, JobState } from '../../core/job/job.js'
import { checkFields, type FieldChanges } from '../../core/job/job-fields.js'
import { type JobParent, traceContextOf } from '../../core/job/job-origin.js'
import { readCheckpoint } from '../../core/job/marked-checkpoint.js'
import type { WaitReason } from '../../core/job/wait-reason.js'
import type { Packing } from '../../core/packing/packing.js'
import { type Backoff, delayAfter } from '../../core/task/backoff.js'
import type { AnyEnqueueOptions } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import { defined } from '../../core/values/defined.js'
import { digestId } from '../../core/values/ids.js'
import { anyRecord, exactly, whole } from '../../core/values/option-check.js'
import type { Mill } from '../../mill/mill.js'
import { namedTask, sendNamedSignal, signalsOf } from '../../mill/named-task.js'
import type { JobKey, StoredJob } from '../../stores/contract/job-records.js'
import type { Store } from '../../stores/contract/store.js'
import { WebRefusal } from '../failure.js'
import type { MillWindow } from '../mill-window.js'
import { joinGraph } from '../state/join-graph.js'
import { namedQueues, unlessDamaged } from '../state/queue-rows.js'
import { taskExamples } from '../state/task-examples.js'
import { type EndpointCall, endpoint } from './endpoint.js'
import { refuseUnconfirmed } from './queue-endpoints.js'
import {
  type Choice,
  changed,
  changedSome,
  choice,
  counted,
  cursor,
  duration,
  limit,
  listFilter,
  type NewJobBody,
  newJobs,
  newPlace,
  nothing,
  page,
  placeChoice,
  reason,
  state,
  stepName,
  taskName,
} from './shapes.js'

/** The place in a request. */
function placeIn({ priority, delay, runAt }: v.InferOutput<typeof newPlace>): PlaceChange {
  return defined({ priority, delay: delay as number | undefined, runAt })
}

/** The chosen jobs. Throws a refusal if many are chosen without confirmation. */
function whichOf({ ids, all, confirm }: Choice, queue: string): string[] | 'all' | 'failed' {
  if (ids !== undefined) return ids
  refuseUnconfirmed(queue, confirm)
  return all ? 'all' : 'failed'
}

/** Changes one job. Throws a refusal if nothing of it is kept. */
async function changeOne(
  { window, params: { queue = '', id = '' } }: Pick<EndpointCall<unknown, unknown>, 'window' | 'params'>,
  change: (admin: QueueAdmin, id: string) => Promise<number | boolean>,
): Promise<{ changed: number; more: boolean }> {
  const admin = await window.known(queue)
  const changedJobs = Number(await change(admin, id))
  if (changedJobs === 0 && (await admin.jobs.get(id)) === undefined) throw nothingKept(queue, id)
  return { changed: changedJobs, more: false }
}

function nothingKept(queue: string, id: string): WebRefusal {
  return new WebRefusal(
    'job-unknown',
    `nothing is kept of a job '${id}' in queue '${queue}': it ended without a kept result, or never was.`,
  )
}

/** Of a field's value, and of null, which removes it. */
const fieldsJson = {
  type: 'object',
  additionalProperties: {
    anyOf: [{ anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }] }, { type: 'null' }],
  },
}

const summaries = {
  cancel: 'Cancel $: waiting jobs never run; a running job learns of it at its next beat',
  'run-now': 'Make $ due now, if scheduled',
  bury: 'Put $ into the morgue, if waiting',
  delete: 'Delete $, if waiting or kept as a result, without a trace',
} as const

function manyEndpoint(verb: JobVerb) {
  return endpoint({
    method: 'POST',
    path: `/queues/:queue/jobs/${verb}`,
    summary: summaries[verb].replace('$', 'jobs'),
    action: `job.${verb}`,
    body: choice,
    answer: changedSome,
    run: ({ window, params: { queue = '' }, body }) => {
      const { where } = body
      if (where !== undefined) {
        refuseUnconfirmed(queue, body.confirm)
        return window.actOn(queue, (admin) => admin.filteredSteps(verb, window.filterOf(where), body))
      }
      const which = whichOf(body, queue)
      return window.act(queue, (admin) => admin.jobs[jobVerbs[verb].method](which, body.reason))
    },
  })
}

function oneEndpoint(verb: 'cancel' | 'run-now' | 'bury') {
  return endpoint({
    method: 'POST',
    path: `/queues/:queue/jobs/:id/${verb}`,
    summary: summaries[verb].replace('$', 'a job'),
    action: `job.${verb}`,
    body: verb === 'cancel' ? exactly({ reason }) : nothing,
    answer: changed,
    run: (call) =>
      changeOne(call, (admin, id) =>
        admin.jobs[jobVerbs[verb].method]([id], (call.body as { readonly reason?: string }).reason),
      ),
  })
}

export const jobEndpoints = [
  // A job with an id is enqueued once, however often it is sent.
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs',
    summary: 'Enqueue up to 1,000 jobs; with the header `idempotency-key`, jobs without an id are enqueued once too',
    action: 'job.enqueue',
    body: newJobs,
    status: 201,
    run: async ({ window: { mill }, asked: { request }, params: { queue = '' }, body }) => {
      const key = request.headers.get('idempotency-key') ?? undefined
      if (key !== undefined && !keyForm.test(key))
        throw new WebRefusal(
          'argument-invalid',
          'the header `idempotency-key` must be 1 to 200 characters of ASCII without spaces.',
        )
      // Refuses an unknown queue even if the body has no jobs.
      mill.queue(queue)
      const jobs = 'jobs' in body ? body.jobs : [body]
      const trace = traceContextOf(request.headers.get('traceparent'), request.headers.get('tracestate'))
      const items = jobs.map((job, i) => ({
        ...itemOf(mill, queue, job, key === undefined ? undefined : keyedId(queue, key, i)),
        ...(trace && { origin: { trace } }),
      }))
      const { children: client } = mill.runParts
      const handles = items.length === 1 ? [await client.enqueueItem(items[0]!)] : await client.enqueueItems(items)
      const stored = handles.map(({ id, outcome }) => ({ id, outcome }))
      return { jobs: stored, changed: stored.filter(({ outcome }) => outcome !== 'duplicate').length }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/tasks',
    summary:
      'The tasks that the mill declares for it, each with an example of its input: of its schema, otherwise of its latest job',
    answer: page,
    run: async ({ window, params: { queue = '' } }) => ({ items: await taskExamples(window, queue) }),
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/jobs',
    summary:
      'Its jobs, page by page, in `waits` why each has not begun; with `task` or a filter only those of each page, and pages without any are passed over for a second',
    query: {
      state,
      by: v.exactOptional(v.picklist(['id', 'time', 'retry'])),
      task: v.exactOptional(taskName),
      ...listFilter,
      cursor,
      limit,
    },
    answer: page,
    run: async ({ window, params: { queue = '' }, query }) => {
      const admin = await window.known(queue)
      const { jobs, cursor: next } = await window.pageWithJobs(query, admin.jobs.list)
      const shown = jobs.map((job) => window.shown(job))
      const asked = jobs.map((job, i) => askedAs(job, shown[i]!))
      const waits = await explained(await window.mill.adminParts.look(), queue, asked, Date.now())
      const items = shown.map((job, i) => ({ ...job, ...waitsIn(waits[i]!) }))
      return { items, ...defined({ cursor: next }) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/count',
    summary:
      'How many of its jobs a filter chooses; if `more`, so far: add what the same request with `cursor` answers',
    query: { state, task: v.exactOptional(taskName), ...listFilter, cursor },
    answer: counted,
    run: async ({ window, params: { queue = '' }, query: { cursor: from, ...where } }) => {
      const { changed: count, ...rest } = await window.actOn(queue, (admin) =>
        admin.countSteps(window.filterOf(where), from),
      )
      return { count, ...rest }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/jobs/:id',
    summary:
      'Everything known of a job: in `waits` why it has not begun, its log, its checkpoint, its relatives, its retries to come',
    run: async ({ window, params: { queue = '', id = '' } }) => {
      const job = await (await window.known(queue)).jobs.get(id)
      if (job === undefined) throw nothingKept(queue, id)
      const shown = window.shown(job)
      const retry = retryOutlook(window.mill, job)
      const leaseMs = window.mill.queues.get(queue)?.leaseMs
      const signals = signalsOf(window.mill, job.task).map(({ name }) => name)
      return {
        ...{ ...shown, ...(await familyOf(window, { queue, id }, shown)) },
        ...waitsIn(await explainedJob(await window.mill.adminParts.look(), askedAs(job, shown), Date.now())),
        ...defined({ retry, leaseMs, signals: signals.length === 0 ? undefined : signals }),
      }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/jobs/:id/graph',
    summary: 'The jobs that a job waits for, those that wait for it, and their own, at most 200; larger sets by counts',
    run: async ({ window, params: { queue = '', id = '' } }) => {
      await window.known(queue)
      const { look, registry } = window.mill.adminParts
      const store = await look()
      if ((await kept(store, queue, id)) === undefined) throw nothingKept(queue, id)
      return joinGraph(store, registry, { queue, id })
    },
  }),
  ...(['cancel', 'run-now', 'bury', 'delete'] as const).map(manyEndpoint),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/reschedule',
    summary: 'Give jobs that wait another `priority`, another due time by `delay` or `runAt`, or both',
    action: 'job.reschedule',
    body: placeChoice,
    answer: changedSome,
    run: ({ window, params: { queue = '' }, body }) => {
      const { ids, where = {}, cursor: from } = body
      const place = placeIn(body)
      if (ids !== undefined) return window.act(queue, (admin) => admin.jobs.reschedule(ids, place))
      refuseUnconfirmed(queue, body.confirm)
      return window.actOn(queue, (admin) =>
        admin.filteredSteps('reschedule', window.filterOf(where), { cursor: from, place }),
      )
    },
  }),
  ...(['cancel', 'run-now', 'bury'] as const).map(oneEndpoint),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/:id/reschedule',
    summary: 'Give a job that waits another `priority`, another due time by `delay` or `runAt`, or both',
    action: 'job.reschedule',
    body: newPlace,
    answer: changed,
    run: (call) => changeOne(call, (admin, id) => admin.jobs.reschedule([id], placeIn(call.body))),
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/:id/enqueue-again',
    summary: 'Enqueue a job like this one under a new id, with its input or another `input`',
    action: 'job.enqueue-again',
    body: exactly({ input: v.exactOptional(v.unknown()) }),
    status: 201,
    run: async ({ window, params: { queue = '', id = '' }, body }) => {
      const job = await (await window.known(queue)).jobs.enqueueAgain(id, body)
      if (job === undefined) throw nothingKept(queue, id)
      return { jobs: [{ id: job.id, outcome: job.outcome }], changed: 1 }
    },
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/:id/fail',
    summary: 'End the current run of a job as a failure, from outside',
    action: 'job.fail',
    body: exactly({
      reason: v.optional(v.pipe(v.string(), v.maxLength(1_000)), 'failed by an operator'),
      delay: v.exactOptional(duration),
      last: v.exactOptional(v.boolean()),
    }),
    answer: changed,
    run: (call) => {
      const { reason: why, delay, last } = call.body
      const options = defined({ delay: delay as number | undefined, last })
      return changeOne(call, (admin, id) => admin.jobs.fail(id, why, options))
    },
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/:id/fields',
    summary: 'Set fields of a job; null removes a field',
    action: 'job.fields',
    body: v.pipe(anyRecord<FieldChanges[string]>(), v.metadata({ json: fieldsJson })),
    answer: changed,
    run: (call) => {
      checkFields(call.body)
      return changeOne(call, (admin, id) => admin.jobs.setFields(id, call.body))
    },
  }),
  // The audit has the name of the signal, and no data.
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/:id/signal',
    summary: 'Send a job one of the `signals` of its task, whose schema checks the data',
    action: 'job.signal',
    body: exactly({ signal: taskName, data: v.exactOptional(v.unknown()) }),
    answer: exactly({ answer: v.picklist(['delivered', 'kept', 'duplicate', 'full', 'gone']), changed: whole(0) }),
    run: async ({ window, params: { queue = '', id = '' }, body: { signal, data } }) => {
      await window.known(queue)
      const answer = await sendNamedSignal(window.mill, { queue, id }, signal, data)
      return { answer, changed: Number(answer === 'delivered' || answer === 'kept') }
    },
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/jobs/:id/forget-step',
    summary:
      'Forget a stored step or sleep of a job, or with `signal` a signal: its next run makes it again, or waits anew',
    action: 'job.forget-step',
    body: exactly({ step: stepName, signal: v.exactOptional(v.boolean()) }),
    answer: changed,
    run: (call) => {
      const { step, signal } = call.body
      return changeOne(call, (admin, id) => admin.jobs.forgetStep(id, step, { signal }))
    },
  }),
  endpoint({
    method: 'DELETE',
    path: '/queues/:queue/jobs/:id',
    summary: 'Delete a job that waits, or its kept result',
    action: 'job.delete',
    answer: changed,
    run: (call) => changeOne(call, (admin, id) => admin.jobs.delete([id])),
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/jobs/:id/events',
    summary: 'The changes and log lines of a job, as server-sent events `job` and `log`; ends with `end`',
    isStream: true,
    run: async ({ window, streams, params: { queue = '', id = '' }, asked }) => {
      const admin = await window.known(queue)
      if ((await admin.jobs.get(id)) === undefined) throw nothingKept(queue, id)
      return streams.job(queue, id, asked.request.signal)
    },
  }),
]

/** Why a job has not begun; left out if it has. */
function waitsIn(waits: readonly WaitReason[]): { readonly waits?: readonly WaitReason[] } {
  return waits.length === 0 ? {} : { waits }
}

/** The job as its reasons are asked for: what they decide by is its own, and what they quote is as it is shown. */
function askedAs(job: JobRecord, shown: JobRecord): ExplainedJob {
  const { id, queue, task, state, attempt, runAt, suspect, group, startedAt, expiresAt } = job
  const { suspect: _suspect, group: shownGroup, startedAt: _startedAt, expiresAt: _expiresAt, ...quoted } = shown
  return {
    ...{ ...quoted, id, queue, task, state, attempt, runAt, isGroupHidden: shownGroup !== group },
    ...defined({ suspect, group, startedAt, expiresAt }),
  }
}

/** The form of `idempotency-key`. */
const keyForm = /^[\x21-\x7e]{1,200}$/

function itemOf(
  mill: Mill,
  queue: string,
  { task: name, input, ...options }: NewJobBody,
  keyed: string | undefined,
): EnqueueItem {
  const task = namedTask(mill, name, queue)
  const elsewhere = task.queue === queue ? {} : { queue }
  const given = { ...options, ...elsewhere } as AnyEnqueueOptions
  if (keyed === undefined) return { task, input, options: given }
  // An ordered payload belongs to the id that its task or its producer names.
  if (task.kind === 'ordered') return { task, input, options: given, child: keyed }
  return { task, input, options: { id: keyed, ...given } }
}

/** The same id for the same place in a request that is sent again. */
function keyedId(queue: string, key: string, place: number): string {
  return digestId(
    createHash('sha256')
      .update(JSON.stringify([queue, key, place]))
      .digest(),
  )
}

interface RetryOutlook {
  /** Failures after which it is tried again. */
  readonly max: number
  /** For each of the next failures, at most 10: the shortest and the longest delay that may follow, in ms. */
  readonly delays: readonly { readonly leastMs: number; readonly mostMs: number }[]
}

const mostDelays = 10
/** About the highest value of `random()`. */
const highest = 1 - 2 ** -32

/**
 * How often its task lets the job fail, and how long it waits after each further failure. Undefined if this mill does not
 * declare its task: only workers elsewhere know it.
 */
function retryOutlook({ adminParts: { registry } }: Mill, job: JobRecord): RetryOutlook | undefined {
  const task = registry.orderedTask(job.queue) ?? registry.find(job.task)
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

interface Relative {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Absent if nothing of it is kept any more. */
  readonly state?: JobState
}

interface JobFamily {
  readonly parent?: Relative
  /** The job that it repeats. */
  readonly repeatOf?: Relative
  /** How many enqueue calls its record has noted. Absent: none. */
  readonly childCalls?: number
  /** The jobs of the last 100 of those calls, as far as they can be found. */
  readonly children?: readonly Relative[]
}

const mostCalls = 100
/** A call names its job, but not the job's queue. */
const mostLookups = 2_000

/**
 * Its parent and the job that it repeats in their present states, as `shown` of its record names them, and the children noted
 * in its record.
 */
async function familyOf(
  window: MillWindow,
  { queue, id }: JobKey,
  { parent, repeatOf }: Pick<JobRecord, 'parent' | 'repeatOf'>,
): Promise<JobFamily> {
  const { look, packing } = window.mill.adminParts
  const store = await look()
  const now = async (job: JobParent | undefined): Promise<Relative | undefined> =>
    job && { ...job, ...defined({ state: (await kept(store, job.queue, job.id))?.state }) }
  const [stored, above, before] = await Promise.all([kept(store, queue, id), now(parent), now(repeatOf)])
  const calls = callsIn(stored, packing)
  return {
    ...defined({ parent: above, repeatOf: before }),
    ...(calls.length > 0 && {
      childCalls: calls.length,
      children: await childrenOf(store, calls.slice(-mostCalls), await queuesFrom(window, queue)),
    }),
  }
}

function kept(store: Store, queue: string, id: string): Promise<StoredJob | undefined> {
  return unlessDamaged(recordsOf(store).get(queue, id))
}

/** The names of its enqueue calls; none if the checkpoint with them cannot be read here. */
function callsIn(job: StoredJob | undefined, packing: Packing): readonly string[] {
  if (job?.checkpoint === undefined) return []
  const { payload, codec } = job.checkpoint
  try {
    return readCheckpoint(packing.unpack(payload, codec, 'checkpoint', job)).marks
  } catch {
    return []
  }
}

/** Its own queue first, as a child is often in its parent's queue. */
async function queuesFrom({ mill }: MillWindow, queue: string): Promise<string[]> {
  const others = (await namedQueues(mill)).filter(({ name, kind }) => name !== queue && kind === 'plain')
  return [queue, ...others.map(({ name }) => name)]
}

/** The id of a child is the name of its call, unless the call gave another id, or enqueued several jobs. */
async function childrenOf(store: Store, calls: readonly string[], queues: readonly string[]): Promise<Relative[]> {
  const asked = queues.slice(0, Math.max(1, Math.floor(mostLookups / calls.length)))
  const looks = asked.flatMap((queue) => calls.map((id) => kept(store, queue, id)))
  const found = (await Promise.all(looks)).filter((job) => job !== undefined)
  return found.map(({ queue, id, task, state }) => ({ queue, id, task, state }))
}
