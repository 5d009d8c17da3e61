/** A test context: the second argument of a handler, made by a test, which reads the handler's calls from it. */

import * as v from 'valibot'
import { InvalidArgumentError } from '../core/errors.js'
import type { RunningJob } from '../core/job/job.js'
import type { JobFields } from '../core/job/job-fields.js'
import { describe } from '../core/messages/describe.js'
import { systemClock } from '../core/platform/clock.js'
import { type AnyTask, isBatchTask, refuseNoTask } from '../core/task/any-task.js'
import type { BatchContext, JobContext, JoinContext, OrderedContext } from '../core/task/contexts.js'
import type { Joined, JoinedMany, JoinSets, MemberSet, Settled } from '../core/task/join-sets.js'
import type { AnyOrderedTask } from '../core/task/ordered-task.js'
import type { AnyBatchTask, AnySingleTask, JoinTask } from '../core/task/task.js'
import type { ContextOf } from '../core/task/task-definition.js'
import { callForms, callOptions } from '../core/values/call-check.js'
import { defined } from '../core/values/defined.js'
import type { Claim } from '../stores/contract/claim.js'
import { BatchRecords, JobRecords, OrderedRecords } from './context-records.js'
import type { Observed } from './observed.js'

/** The properties of the job. Defaults: those of a job at its first attempt. */
export interface GivenJob extends Partial<Omit<RunningJob, 'task'>> {
  /** The value that an earlier attempt has stored by `ctx.checkpoint()`. */
  readonly lastCheckpoint?: unknown
  /** The data of the signals that have come, by their names; the others do not come in time. */
  readonly signals?: Readonly<Record<string, unknown>> | undefined
}

/** The properties of a job that waited for others. */
export interface GivenJoin<Sets extends JoinSets> extends GivenJob {
  /** What its handler finds in `ctx.joined`; for a set of many a list of its members. */
  readonly joined: { readonly [Name in keyof Sets]: GivenSet<Joined<Sets>[Name]> }
}

type GivenSet<Set> = Set extends JoinedMany<infer Member> ? readonly Member[] : Set

/** The properties of the ids and payloads of an ordered task. */
export interface GivenOrdered extends Partial<Pick<RunningJob, 'queue' | 'fence' | 'attempt'>> {
  /** The handler's argument: by id its payloads, old to new. */
  readonly payloadsById: ReadonlyMap<string, readonly unknown[]>
  /** The ids for which more payloads follow. Default: none. */
  readonly more?: readonly string[] | undefined
}

/** The properties of the jobs of a batch task. */
export interface GivenBatch extends Partial<Pick<RunningJob, 'queue' | 'attempt'>> {
  /** The handler's argument. */
  readonly inputs: readonly unknown[]
}

/** What the handler finds as `ctx.context`; it must be given if the handler needs anything. */
type GivenContext<Context> = unknown extends Context
  ? { readonly context?: Context | undefined }
  : { readonly context: Context }

export interface TestContext<Context = unknown> extends JobContext<Context>, Observed {
  readonly logged: readonly string[]
  readonly checkpoints: readonly unknown[]
  /** The fields that the handler has set, without those that it removed again. */
  readonly fieldsWritten: JobFields
}

export interface TestOrderedContext<Context = unknown> extends OrderedContext<Context>, Observed {
  /** By id the error that the handler has passed to `ctx.fail()`. */
  readonly failed: ReadonlyMap<string, unknown>
  /** By id how many payloads the handler has named by `ctx.done()`, if any. */
  readonly payloadsDone: ReadonlyMap<string, number>
}

export interface TestBatchContext<Context = unknown> extends BatchContext<Context>, Observed {
  /** By index of the input the error that the handler has passed to `ctx.fail()`. */
  readonly failed: ReadonlyMap<number, unknown>
}

/**
 * The context for one call of the task's handler: `await encode.run!(input, testContext(encode, { attempt: 2 }))`. The
 * handler's calls are recorded and sent nowhere. Throws `InvalidArgumentError` for a value that is not a task, an option
 * that there is not, or a batch without payloads.
 */
export function testContext<Sets extends JoinSets, Context>(
  // biome-ignore lint/suspicious/noExplicitAny: as of any task
  task: JoinTask<string, any, any, any, Sets, string, Context>,
  given: GivenJoin<Sets> & GivenContext<Context>,
): TestContext<Context> & JoinContext<Sets, Context>
export function testContext<T extends AnySingleTask>(
  task: T,
  ...given: unknown extends ContextOf<T>
    ? [given?: GivenJob & GivenContext<unknown>]
    : [given: GivenJob & GivenContext<ContextOf<T>>]
): TestContext<ContextOf<T>>
export function testContext<T extends AnyBatchTask>(
  task: T,
  given: GivenBatch & GivenContext<ContextOf<T>>,
): TestBatchContext<ContextOf<T>>
export function testContext<T extends AnyOrderedTask>(
  task: T,
  given: GivenOrdered & GivenContext<ContextOf<T>>,
): TestOrderedContext<ContextOf<T>>
export function testContext(
  task: AnyTask,
  { context, ...given }: (GivenJob | GivenJoin<JoinSets> | GivenBatch | GivenOrdered) & GivenContext<unknown> = {},
): TestContext | TestBatchContext | TestOrderedContext {
  refuseNoTask(task, 'testContext()')
  checkOf(task)({ context, ...given })
  const ctx = contextOf(task, given)
  // Otherwise it says that none was given.
  if (context !== undefined) Object.defineProperty(ctx, 'context', { enumerable: true, value: context })
  return ctx
}

const { own } = callForms
const date = v.optional(v.date('must be a Date'))
const ofAll = { context: own, queue: own, attempt: own }
const ofOne = {
  ...{ ...ofAll, id: own, priority: own, crashes: own, fence: own, group: own, meta: own, lastError: own },
  ...{ createdAt: date, runAt: date, waitedUntil: date, expiresAt: date },
  ...{ parent: own, repeatOf: own, trace: own, schedule: own, lastCheckpoint: own, signals: own },
}
const checkOne = callOptions('testContext', ofOne)
const checkJoin = callOptions('testContext', { ...ofOne, joined: own })
const checkBatch = callOptions('testContext', { ...ofAll, inputs: own })
const checkOrdered = callOptions('testContext', { ...ofAll, fence: own, payloadsById: own, more: own })

function checkOf(task: AnyTask): (given: unknown) => void {
  if (task.kind === 'ordered') return checkOrdered
  if (isBatchTask(task)) return checkBatch
  return task.joins === undefined ? checkOne : checkJoin
}

function contextOf(
  task: AnyTask,
  given: GivenJob | GivenJoin<JoinSets> | GivenBatch | GivenOrdered,
): TestContext | TestBatchContext | TestOrderedContext {
  if (task.kind === 'ordered') return orderedContext(task, given)
  return isBatchTask(task) ? batchContext(task, given) : jobContext(task, given)
}

function jobContext(task: AnySingleTask, given: GivenJob & Partial<GivenJoin<JoinSets>>): TestContext {
  const {
    lastCheckpoint,
    signals,
    meta = {},
    lastError,
    createdAt,
    runAt,
    waitedUntil,
    expiresAt,
    parent,
    repeatOf,
    trace,
    schedule,
    joined,
    ...job
  } = given
  const claim: Claim = {
    ...claimOf(task, job),
    ...defined({
      createdAt: createdAt?.getTime(),
      runAt: runAt?.getTime(),
      waitedUntil: waitedUntil?.getTime(),
      expiresAt: expiresAt?.getTime(),
      error: lastError,
    }),
  }
  const origin = defined({ parent, repeatOf, trace, schedule })
  const ctx = new JobRecords(claim, task, meta, { origin, lastCheckpoint, signals })
  if (task.joins !== undefined) ctx.joined = joinedOf(task.name, task.joins, joined)
  return ctx
}

function joinedOf(task: string, sets: ReadonlyMap<string, MemberSet>, given: unknown): Joined<JoinSets> {
  const of = Object(given) as Readonly<Record<string, unknown>>
  const missing = [...sets.values()].find(({ name, isMany }) => !(name in of) || (isMany && !Array.isArray(of[name])))
  if (missing !== undefined)
    throw new InvalidArgumentError(
      `testContext() of the task '${task}' needs what its handler finds in ctx.joined: { joined: { ${missing.name}: ${missing.isMany ? '[member]' : 'result'} } }; got ${describe(of[missing.name])}.`,
    )
  return Object.fromEntries(
    [...sets.values()].map(({ name, isMany, onDead }) => [
      name,
      isMany ? joinedMany(of[name] as unknown[], onDead === 'go-on') : of[name],
    ]),
  ) as unknown as Joined<JoinSets>
}

function joinedMany(members: readonly unknown[], areSettled: boolean): JoinedMany<unknown> {
  const counts = { completed: 0, dead: 0, cancelled: 0, expired: 0 }
  for (const member of members) counts[areSettled ? (member as Settled<unknown>).fate : 'completed'] += 1
  return {
    counts,
    async *[Symbol.asyncIterator]() {
      yield* members
    },
  }
}

function batchContext(task: AnyBatchTask, { inputs, ...job }: Partial<GivenBatch>): TestBatchContext {
  if (!Array.isArray(inputs) || inputs.length === 0)
    throw new InvalidArgumentError(
      `testContext() of the batch task '${task.name}' needs the inputs that its handler is given: { inputs: [input] }; got ${describe(inputs)}.`,
    )
  const claims = inputs.map((input, i) => ({
    claim: claimOf(task, { ...job, id: `job-${i + 1}` }),
    inputs: [input],
    metas: [{}],
  }))
  return new BatchRecords(task, claims)
}

function orderedContext(
  task: AnyOrderedTask,
  { payloadsById, more = [], ...job }: Partial<GivenOrdered>,
): TestOrderedContext {
  if (!(payloadsById instanceof Map) || payloadsById.size === 0)
    throw new InvalidArgumentError(
      `testContext() of the ordered task '${task.name}' needs the payloads that its handler is given: { payloadsById: new Map([['id', [payload]]]) }; got ${describe(payloadsById)}.`,
    )
  const claims = [...(payloadsById as GivenOrdered['payloadsById'])].map(([id, inputs]) => ({
    claim: {
      ...claimOf(task, { ...job, id }),
      payloads: inputs.map((_, score) => ({ score, payload: '' })),
      ...(more.includes(id) && { hasMore: true as const }),
    },
    inputs,
    metas: inputs.map(() => ({})),
  }))
  return new OrderedRecords(task, claims)
}

function claimOf(
  { name, queue }: AnyTask,
  job: Partial<Pick<Claim, 'id' | 'queue' | 'priority' | 'attempt' | 'crashes' | 'fence' | 'group'>>,
): Claim {
  const now = systemClock.now()
  const first = { id: 'job-1', priority: 0, attempt: 1, crashes: 0, fence: 1, createdAt: now, runAt: now }
  return { ...first, queue, task: name, payload: '', ...job }
}
