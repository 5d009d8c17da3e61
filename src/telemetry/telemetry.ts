/** `millrace/telemetry`: OpenTelemetry traces of enqueues and runs, for applications that have its API installed. */

export type { Traced, TracingOptions } from './tracing.js'
export { tracing } from './tracing.js'
