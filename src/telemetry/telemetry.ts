/** `millrace/telemetry`: OpenTelemetry traces of enqueues and runs, for applications that have its API installed. */

export { tracing } from './tracing.js'
export type { Traced, TracingOptions } from './tracing-options.js'
