/**
 * The trace context of a job: the span that enqueued it, in the form of W3C Trace Context, which any tracer
 * understands.
 */

/** The trace context as a job carries it. */
export interface TraceContext {
  /** Version, trace, span and flags: `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`. */
  readonly traceparent: string
  /** Additions of vendors, at most 512 characters. */
  readonly tracestate?: string
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
