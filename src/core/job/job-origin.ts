/**
 * The origin of a job: where it comes from, such as the job whose handler enqueued it, the span or the schedule. It is
 * stored in the meta under a key of its own, so a store need not know of it; users see the two apart.
 */

/** The known origin of a job; handlers see it in `ctx.job`, records show it. */
export interface JobOrigin {
  /** The job whose handler enqueued this one by `ctx.enqueue()`. */
  readonly parent?: JobParent
  /** The job that this one repeats: `jobs.enqueueAgain()` enqueued it. */
  readonly repeatOf?: JobParent
  /** The span that enqueued it, if a tracer or a request supplied one. */
  readonly trace?: TraceContext
  /** The schedule that enqueued it, for a job of a plain task. */
  readonly schedule?: JobSchedule
}

/** The span that enqueued a job, in the form of W3C Trace Context, which any tracer understands. */
export interface TraceContext {
  /** Version, trace, span and flags: `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`. */
  readonly traceparent: string
  /** Additions of vendors, at most 512 characters. */
  readonly tracestate?: string
}

interface JobSchedule {
  readonly name: string
  /** The instant of the tick; of a job that was run out of turn, when it was enqueued. */
  readonly tickAt: Date
}

export interface JobParent {
  readonly queue: string
  readonly id: string
  readonly task: string
}

/** The reserved key of stored metas. */
export const originKey = 'millrace:origin'

type StoredMeta = Readonly<Record<string, unknown>>

/**
 * An origin as it is stored. `life` names one job among all that an id has in turn, for jobs that may take the place of
 * another: their times of creation do not tell them apart.
 */
export interface StoredOrigin extends Omit<JobOrigin, 'schedule'> {
  readonly life?: string
  /** The name of its schedule. All jobs of a schedule have the same meta; the instant of the tick is in their ids. */
  readonly schedule?: string
}

/** The meta in its stored form. */
export function storedMeta(meta: StoredMeta | undefined, origin: StoredOrigin | undefined): StoredMeta | undefined {
  return origin === undefined ? meta : { ...meta, [originKey]: origin }
}

/** The user's part of a stored meta. */
export function ownMeta(stored: StoredMeta): StoredMeta {
  if (!(originKey in stored)) return stored
  const { [originKey]: _, ...own } = stored
  return own
}

const unknownOrigin: JobOrigin = {}

/**
 * The origin in a stored meta. Invalid parts, as another program may have written them, are left out. `job`: the plain
 * job that has the meta; absent for a payload of an ordered one.
 */
export function originIn(
  stored: StoredMeta | undefined,
  job?: { readonly id: string; readonly createdAt: number },
): JobOrigin {
  const origin = stored?.[originKey]
  if (typeof origin !== 'object' || origin === null) return unknownOrigin
  const { parent, repeatOf, trace, schedule } = origin as Partial<Record<keyof JobOrigin, unknown>>
  const context = traceIn(trace)
  return {
    ...(isParent(parent) && { parent }),
    ...(isParent(repeatOf) && { repeatOf }),
    ...(context && { trace: context }),
    ...(typeof schedule === 'string' &&
      job && { schedule: { name: schedule, tickAt: new Date(tickAtOf(job.id, schedule) ?? job.createdAt) } }),
  }
}

/** The life in a stored meta; absent for a job that takes no other's place. */
export function lifeIn(stored: StoredMeta): string | undefined {
  const origin = stored[originKey]
  const life = typeof origin === 'object' && origin !== null ? (origin as StoredOrigin).life : undefined
  return typeof life === 'string' ? life : undefined
}

function traceIn(value: unknown): TraceContext | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { traceparent, tracestate } = value as Partial<Record<keyof TraceContext, unknown>>
  return traceContextOf(traceparent, tracestate)
}

const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const tracestateForm = /^[\x20-\x7e]{1,512}$/

/**
 * The trace context in two values, which another program or a stranger may have written. Undefined without a valid
 * traceparent; an invalid state is left out.
 */
export function traceContextOf(traceparent: unknown, tracestate: unknown): TraceContext | undefined {
  if (typeof traceparent !== 'string' || !traceparentForm.test(traceparent)) return undefined
  if (typeof tracestate !== 'string' || !tracestateForm.test(tracestate)) return { traceparent }
  return { traceparent, tracestate }
}

function isParent(value: unknown): value is JobParent {
  if (typeof value !== 'object' || value === null) return false
  const { queue, id, task } = value as Partial<Record<keyof JobParent, unknown>>
  return typeof queue === 'string' && typeof id === 'string' && typeof task === 'string'
}

/** The name of the job of a tick. */
export function tickName(schedule: string, at: number): string {
  return `${schedule}@${new Date(at).toISOString().replace('.000Z', 'Z')}`
}

/** The name of the job of a schedule that was run out of turn. `unique`: different for each. */
export function runName(schedule: string, unique: string): string {
  return `${schedule}@run-${unique}`
}

/** The instant of the tick that a job of this schedule is named after; undefined for one out of turn. */
function tickAtOf(id: string, schedule: string): number | undefined {
  // A number may follow, which keeps the job in the shard of its schedule.
  const [instant = ''] = /^[^Z]*Z/.exec(id.slice(schedule.length + 1)) ?? []
  const at = id.startsWith(`${schedule}@`) ? Date.parse(instant) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}
