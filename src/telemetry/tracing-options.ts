/** The options of tracing. */

import type { Attributes, TracerProvider } from '@opentelemetry/api'
import type { EnqueueItem, Run } from '../core/task/middleware.js'

/** The subject of a span: an enqueue of these items, or a run. */
export type Traced = { readonly items: readonly EnqueueItem[] } | { readonly run: Run }

export interface TracingOptions {
  /** The provider that makes the spans. Default: the global one of `@opentelemetry/api`, even if it is set later. */
  readonly tracerProvider?: TracerProvider | undefined
  /**
   * How the span of a run relates to the span of its enqueue. `'parent'`: it is a child, so that one trace shows the
   * whole way of a job. `'link'`: it begins a trace of its own. It has a link to the enqueue in both cases. Default
   * `'parent'`.
   */
  readonly relation?: 'parent' | 'link' | undefined
  /**
   * Returns further attributes for a span. An error that it throws goes to the `diag` logger of the API. Default: none.
   */
  readonly attributes?: ((traced: Traced) => Attributes) | undefined
}
