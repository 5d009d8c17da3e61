/** The carried context: the span that a job carries from the process that enqueues it to the one that runs it. */

import { createTraceState, isSpanContextValid, type SpanContext } from '@opentelemetry/api'
import { type TraceContext, traceContextOf } from '../core/job/job-origin.js'

/** Undefined for an invalid span, such as those of an API without an SDK. */
export function carriedOf(span: SpanContext): TraceContext | undefined {
  if (!isSpanContextValid(span)) return undefined
  const { traceId, spanId, traceFlags, traceState } = span
  const flags = traceFlags.toString(16).padStart(2, '0')
  return traceContextOf(`00-${traceId}-${spanId}-${flags}`, traceState?.serialize())
}

export function spanContextOf({ traceparent, tracestate }: TraceContext): SpanContext {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return {
    ...{ traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true },
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  }
}
