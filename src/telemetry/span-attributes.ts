/**
 * The content of spans: their attributes, by OpenTelemetry's conventions for messaging and Millrace's own, and the
 * status of a run, derived from the ends of its jobs.
 */

import type { Attributes } from '@opentelemetry/api'
import type { TraceContext } from '../core/job/job-origin.js'
import { messageOf } from '../core/messages/describe.js'
import type { EndAnswer, EnqueueItem, RunEnd, TaskRun } from '../core/task/middleware.js'

/** The kind of a span, in the terms of the conventions. */
export type Operation = 'send' | 'process' | 'settle'

/** `queue`: undefined if there are several. */
export function operationAttributes(operation: Operation, queue: string | undefined): Attributes {
  return {
    'messaging.system': 'millrace',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    ...(queue === undefined ? {} : { 'messaging.destination.name': queue }),
  }
}

/** The queue of all the items; undefined if they go into several. */
export function queueOf(items: readonly EnqueueItem[]): string | undefined {
  const [queue, ...others] = new Set(items.map(({ task, options }) => options?.queue ?? task.queue))
  return others.length === 0 ? queue : undefined
}

/** The attributes that are known before the items are stored. */
export function itemAttributes(items: readonly EnqueueItem[]): Attributes {
  const [task, ...others] = new Set(items.map((item) => item.task.name))
  const [first] = items
  const group: unknown = items.length === 1 ? first?.options?.group : undefined
  return {
    ...(items.length === 1 ? {} : { 'messaging.batch.message_count': items.length }),
    ...(task === undefined || others.length > 0 ? {} : { 'millrace.task': task }),
    ...(typeof group === 'string' ? { 'millrace.group': group } : {}),
  }
}

/** The attributes from the store's answer to one item. */
export function storedAttributes({ job }: EnqueueItem): Attributes {
  if (job === undefined) return {}
  return { 'messaging.message.id': job.id, ...(job.outcome && { 'millrace.outcome': job.outcome }) }
}

/** A job of a run as tracing sees it, with the spans that enqueued it. */
export interface RunMessage {
  readonly id: string
  readonly attempt: number
  readonly crashes: number
  readonly group?: string
  readonly runAt: Date
  readonly waitedUntil?: Date
  /** For an ordered job one for each payload; undefined if unknown. */
  readonly traces: readonly (TraceContext | undefined)[]
}

/** The jobs of a run. */
export function messagesOf({ ctx }: TaskRun): RunMessage[] {
  if (!('jobs' in ctx)) return [{ ...ctx.job, traces: [ctx.job.trace] }]
  if (!('more' in ctx)) return ctx.jobs.map((job) => ({ ...job, traces: [job.trace] }))
  return [...ctx.jobs.values()].map((job) => ({ ...job, traces: job.payloads.map(({ trace }) => trace) }))
}

/** The span that enqueued all of them; undefined if there are several or none. */
export function commonTrace(messages: readonly RunMessage[]): TraceContext | undefined {
  const traces = messages.flatMap(({ traces }) => traces)
  const [first] = traces
  return traces.every((trace) => trace?.traceparent === first?.traceparent) ? first : undefined
}

/** `now`: in ms since 1970. */
export function runAttributes(run: TaskRun, messages: readonly RunMessage[], now: number): Attributes {
  const [first] = messages
  // As the lag of a queue counts.
  const able = messages.map(({ runAt, waitedUntil = runAt }) => waitedUntil.getTime())
  return {
    'millrace.task': run.task.name,
    'millrace.discipline': disciplineOf(run),
    ...(able.length === 0 ? {} : { 'millrace.lag_ms': Math.max(0, now - Math.min(...able)) }),
    ...(isMany(run)
      ? { 'messaging.batch.message_count': messages.length }
      : first && {
          'messaging.message.id': first.id,
          'millrace.attempt': first.attempt,
          ...(first.crashes > 0 && { 'millrace.crashes': first.crashes }),
          ...(first.group !== undefined && { 'millrace.group': first.group }),
        }),
  }
}

/** Whether its handler may receive several jobs at once. */
function isMany({ task }: TaskRun): boolean {
  if (task.kind === 'ordered') return task.batchSize > 1
  return 'batch' in task && task.batch !== undefined
}

function disciplineOf(run: TaskRun): string {
  if (run.task.kind === 'ordered') return 'ordered'
  if (isMany(run)) return 'batch'
  return run.task.isolation === undefined ? 'plain' : 'isolated'
}

export function endAttributes(ends: readonly RunEnd[]): Attributes {
  const [first, ...others] = ends
  if (first === undefined || others.length > 0) return { 'messaging.batch.message_count': ends.length }
  const { id, kind, reason } = first
  return {
    ...{ 'messaging.message.id': id, 'millrace.outcome': kind },
    ...(reason === undefined ? {} : { 'millrace.reason': reason }),
  }
}

/** Why a run, or one of its jobs, did not succeed. */
export interface Fault {
  /** One of few values: a code of Millrace, the name of a class, or the reason of an end. */
  readonly type: string
  readonly message: string
  readonly error?: unknown
}

/** For these reasons a job is put back because its handler, task or queue wants it. */
const asWanted: ReadonlySet<string | undefined> = new Set(['snoozed', 'held', 'should-run', 'late', 'deferred'])

/** Undefined if nothing is wrong. */
export function faultOf({ kind, reason, error }: RunEnd): Fault | undefined {
  if (kind === 'completed' || (kind === 'released' && asWanted.has(reason))) return undefined
  // For a job that did not run here, a text says why.
  if (typeof error === 'string') return { type: reason ?? kind, message: error, error }
  if (error !== undefined) return faultBy(error)
  // Reasons of a cancel and of a burial are free text.
  const type = kind === 'released' && reason !== undefined ? reason : kind
  return { type, message: reason ?? kind }
}

export function faultBy(error: unknown): Fault {
  return { type: typeOf(error), message: messageOf(error), error }
}

/** The fault of an end that the store did not take. */
export function faultOfAnswer(answer: EndAnswer): Fault {
  return { type: answer ?? 'unanswered', message: 'the store did not take the end of a job' }
}

function typeOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return '_OTHER'
    const { code } = error as { readonly code?: unknown }
    return typeof code === 'string' ? code : error.name
  } catch {
    // A user's proxy that throws when looked at.
    return '_OTHER'
  }
}
