/** The job record for users, made from the store's record. */

import { CodecError, ResultNotKeptError } from '../../core/errors.js'
import type { JobHold, JobMeta, JobRecord, JoinProgress, PayloadRecord, StepRecord } from '../../core/job/job.js'
import { failuresIn, ownError } from '../../core/job/job-failures.js'
import { type JobOrigin, originIn, ownMeta } from '../../core/job/job-origin.js'
import { readCheckpoint } from '../../core/job/marked-checkpoint.js'
import { messageOf } from '../../core/messages/describe.js'
import { type Packing, whyUnkept } from '../../core/packing/packing.js'
import { type JobPart, type Owner, stepOwner } from '../../core/packing/seal.js'
import type { Payload } from '../../core/values/codec.js'
import { defined } from '../../core/values/defined.js'
import type { StoredJob } from '../../stores/contract/job-records.js'
import type { StoredJoin } from '../../stores/contract/joins.js'
import type { ScoredPayload } from '../../stores/contract/new-job.js'
import type { StoredStep } from '../../stores/contract/steps.js'
import type { Store } from '../../stores/contract/store.js'
import { doneIn, memberId } from '../../stores/rules/join-rules.js'
import { withCause } from './join-cause.js'

/** The most payloads for which a decoding error is reported: the reasons are mostly the same. */
const mostProblems = 3

/** The record of one job, with what holds it, the jobs that it waits for, and what its runs have reached. */
export async function wholeRecord(store: Store, job: StoredJob, packing: Packing, now: number): Promise<JobRecord> {
  const place = { queue: job.queue, id: job.id }
  const [heldBy, join, list, explained] = await Promise.all([
    holdsOn(store, job.queue, [job], now),
    job.isJoin ? store.joins?.look(place) : undefined,
    job.hasSteps ? store.steps?.read(place) : undefined,
    withCause(store, job),
  ])
  return recordOf(explained, packing, heldBy(job), join ?? (job.isJoin && { sets: [] }), list?.steps)
}

/**
 * The record. Fields that cannot be decoded are left out; `error` then says why. `held`: what holds it. `join`: what it
 * waits for. `steps`: what its runs have reached.
 */
export function recordOf(
  job: StoredJob,
  packing: Packing,
  held?: JobHold,
  join?: StoredJoin,
  steps: readonly StoredStep[] = [],
): JobRecord {
  const problems: string[] = []
  const unpacked = (what: string, part: JobPart, payload?: Payload, codec?: string, owner: Owner = job): unknown => {
    if (payload === undefined || payload.length === 0) return undefined
    const found = unpackedBy(packing, payload, codec, part, owner)
    if ('problem' in found) problems.push(`${what} ${found.problem}`)
    return 'value' in found ? found.value : undefined
  }
  const input = unpacked('input', 'payload', job.payload, job.codec)
  const stored = unpackedMeta(packing, job, 'meta', job, (problem) => problems.push(`meta ${problem}`))
  const unkept = whyUnkept(job.result)
  if (unkept !== undefined) problems.push(`the result could not be kept: ${unkept}`)
  const result = unkept === undefined ? unpacked('result', 'result', job.result?.payload, job.result?.codec) : undefined
  const noted = unpacked('checkpoint', 'checkpoint', job.checkpoint?.payload, job.checkpoint?.codec)
  const payloads = job.payloads && payloadRecords(job.payloads, job, packing, problems)
  const reached = steps.map(({ name, kind, at, until, payload, codec }): StepRecord => {
    const part = kind === 'signal' ? 'signal' : 'step'
    const value = unpacked(`${part} '${name}'`, part, payload, codec, stepOwner(job, name))
    return { ...{ name, kind, at: new Date(at) }, ...defined({ until: dateOf(until), value }) }
  })
  const error = [job.error && ownError(job.error), ...problems].filter((text) => text !== undefined).join('\n')
  return defined({
    id: job.id,
    task: job.task,
    queue: job.queue,
    state: job.state,
    input,
    payloads,
    payloadCount: job.payloadCount,
    pendingCount: job.pendingCount,
    meta: givenMeta(stored),
    ...originIn(stored, job),
    priority: job.priority,
    group: job.group,
    held,
    attempt: attemptOf(job),
    crashes: job.crashes,
    suspect: job.suspect,
    createdAt: new Date(job.createdAt),
    updatedAt: new Date(job.updatedAt),
    runAt: new Date(job.runAt),
    waitedUntil: dateOf(job.waitedUntil),
    expiresAt: dateOf(job.expiresAt),
    startedAt: dateOf(job.startedAt),
    finishedAt: dateOf(job.finishedAt),
    host: job.host,
    pid: job.pid,
    worker: job.worker,
    progress: job.progress,
    fields: job.fields,
    checkpoint: readCheckpoint(noted).value,
    log: job.log,
    result,
    error: error === '' ? undefined : error,
    failures: failuresIn(job.error),
    reason: job.reason,
    join: join && progressOf(join),
    joins: job.memberOf?.map(({ join: { queue, id }, set }) => ({ queue, id, set })),
    awaits: job.awaits && { signal: job.awaits.signal, ...defined({ until: dateOf(job.awaits.until) }) },
    steps: reached.length === 0 ? undefined : reached,
  })
}

function progressOf({ sets, waitsUntil }: StoredJoin): JoinProgress {
  return {
    sets: sets.map((set) => {
      const { name, queue, isMany, onDead, size, added, counts, oldest } = set
      const first = oldest === undefined ? undefined : memberId(set, oldest)
      return { name, queue, isMany, onDead, added, done: doneIn(set), counts, ...defined({ size, oldest: first }) }
    }),
    ...defined({ waitsUntil: dateOf(waitsUntil) }),
  }
}

/** Reasons of which the failure is counted: the attempt that the store names would have been the next one. */
const failedReasons: readonly (string | undefined)[] = ['max-retries', 'no-retries', 'unrecoverable']

/** The attempt that runs or comes next; of a job that has ended, the last one. */
export function attemptOf({ state, reason, attempt }: Pick<StoredJob, 'state' | 'reason' | 'attempt'>): number {
  return state === 'dead' && failedReasons.includes(reason) ? Math.max(1, attempt - 1) : attempt
}

/** The payloads. Adds an entry to `problems` for each that cannot be decoded. */
function payloadRecords(
  payloads: readonly ScoredPayload[],
  owner: Owner,
  packing: Packing,
  problems: string[],
): PayloadRecord[] {
  const wrong: string[] = []
  const records = payloads.map((one, i): PayloadRecord => {
    const { score, payload, codec } = one
    const refuse = (problem: string) => wrong.push(`payload ${i + 1} of ${payloads.length} (score ${score}) ${problem}`)
    const input = unpackedBy(packing, payload, codec, 'ordered payload', owner)
    if ('problem' in input) refuse(input.problem)
    const stored = unpackedMeta(packing, one, 'ordered meta', owner, (problem) => {
      if (!('problem' in input)) refuse(`has a meta that ${problem}`)
    })
    return { ...('value' in input && { input: input.value }), score, ...(stored && storedIn(stored)) }
  })
  problems.push(...wrong.slice(0, mostProblems))
  if (wrong.length > mostProblems) problems.push(`and ${wrong.length - mostProblems} more of the payloads`)
  return records
}

/** The meta and the origin of a payload, separated. */
function storedIn(stored: JobMeta): Pick<PayloadRecord, 'meta'> & JobOrigin {
  const meta = givenMeta(stored)
  return { ...defined({ meta }), ...originIn(stored) }
}

/** Undefined if the user gave none. */
export function givenMeta(stored: JobMeta | undefined): JobMeta | undefined {
  const meta = stored && ownMeta(stored)
  return meta === stored || Object.keys(meta!).length > 0 ? meta : undefined
}

/** The meta. Calls `wrong` with the reason if it cannot be read. */
function unpackedMeta(
  packing: Packing,
  stored: Pick<StoredJob, 'meta' | 'codec'> & { readonly payload: Payload },
  part: 'meta' | 'ordered meta',
  owner: Owner,
  wrong: (problem: string) => void,
): JobMeta | undefined {
  const found = unpackedOr(packing, stored.meta, stored.codec, () => packing.unpackMeta(stored, part, owner))
  if ('problem' in found) wrong(found.problem)
  return 'value' in found ? (found.value as JobMeta | undefined) : undefined
}

/** The value, or the reason why there is none. */
function unpackedBy(
  packing: Packing,
  payload: Payload,
  codec: string | undefined,
  part: JobPart,
  owner: Owner,
): { readonly value: unknown } | { readonly problem: string } {
  return unpackedOr(packing, payload, codec, () => packing.unpack(payload, codec, part, owner))
}

function unpackedOr(
  packing: Packing,
  payload: Payload | undefined,
  codec: string | undefined,
  unpack: () => unknown,
): { readonly value: unknown } | { readonly problem: string } {
  const lack = payload === undefined ? undefined : packing.lackFor(payload, codec)
  if (lack !== undefined) return { problem: `was ${lack.stored}, this mill has ${lack.has}` }
  try {
    return { value: unpack() }
  } catch (error) {
    return { problem: `cannot be decoded: ${messageOf(error)}` }
  }
}

/** The value of a kept result. Throws `CodecError`, and `ResultNotKeptError` if it could not be kept. */
export function resultIn(job: StoredJob, packing: Packing): unknown {
  const unkept = whyUnkept(job.result)
  if (unkept !== undefined) throw new ResultNotKeptError(job.queue, job.id, unkept)
  const { payload, codec } = job.result ?? {}
  if (payload === undefined || payload.length === 0) return undefined
  try {
    return packing.unpack(payload, codec, 'result', job)
  } catch (error) {
    throw new CodecError(
      `the result of job '${job.id}' in queue '${job.queue}' cannot be read: ${messageOf(error).replace(/\.$/, '')}.`,
      { cause: error },
    )
  }
}

function dateOf(at: number | undefined): Date | undefined {
  return at === undefined ? undefined : new Date(at)
}

/**
 * What holds each of these jobs of a queue: a hold of the queue or its group, or a pause of the group; undefined if
 * nothing does. One call of the store, and none if no job is ready. `now`: the wall clock.
 */
export async function holdsOn(
  { throttles }: Store,
  queue: string,
  jobs: readonly StoredJob[],
  now: number,
): Promise<(job: StoredJob) => JobHold | undefined> {
  const ready = jobs.filter(({ state }) => state === 'ready')
  if (throttles === undefined || ready.length === 0) return () => undefined
  const groups = [...new Set(ready.flatMap(({ group }) => group ?? []))]
  // A group may be held and paused.
  const { holds } = await throttles.holds(queue, { groups, limit: 1 + 2 * groups.length })
  return (job) => {
    if (job.state !== 'ready') return undefined
    const own = holds.filter(({ group }) => group === undefined || group === job.group)
    if (own.length === 0) return undefined
    if (own.some(({ forMs }) => forMs === undefined)) return { paused: true }
    return { until: new Date(now + Math.max(...own.map(({ forMs }) => forMs!))) }
  }
}
