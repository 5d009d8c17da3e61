/** The messages of a run: its jobs as tracing sees them, each with the spans that enqueued it. */

import type { Run } from '../core/task/middleware.js'
import type { TraceContext } from '../core/trace-context.js'

export interface RunMessage {
  readonly id: string
  readonly attempt: number
  readonly crashes: number
  readonly group?: string
  readonly runAt: Date
  /** For an ordered job one for each payload; undefined if unknown. */
  readonly traces: readonly (TraceContext | undefined)[]
}

export function messagesOf({ ctx }: Run): RunMessage[] {
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
