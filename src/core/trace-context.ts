/** The trace context of a job: which span enqueued it, in the words of W3C Trace Context, so that any tracer understands it. */

/** As a job carries it. */
export interface TraceContext {
  /** Version, trace, span and flags: `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`. */
  readonly traceparent: string
  /** What vendors have added, at most 512 characters. */
  readonly tracestate?: string
}

const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const tracestateForm = /^[\x20-\x7e]{1,512}$/

/** Undefined for what is none; a state that is none is left out alone. Another program, or a stranger, may have written both. */
export function traceContextOf(traceparent: unknown, tracestate: unknown): TraceContext | undefined {
  if (typeof traceparent !== 'string' || !traceparentForm.test(traceparent)) return undefined
  if (typeof tracestate !== 'string' || !tracestateForm.test(tracestate)) return { traceparent }
  return { traceparent, tracestate }
}
