/** The options of tracing. */

import type { Attributes, TracerProvider } from '@opentelemetry/api'
import type { EnqueueItem, Run } from '../core/task/middleware.js'

/** What a span is about: an enqueue of these items, or a run. */
export type Traced = { readonly items: readonly EnqueueItem[] } | { readonly run: Run }

export interface TracingOptions {
  /** What makes the spans. Default: the global one of `@opentelemetry/api`, also where that is set later. */
  readonly tracerProvider?: TracerProvider
  /**
   * How the span of a run belongs to that of its enqueue. `'parent'`: as its child, so that one trace shows the whole way of a
   * job; `'link'`: it begins a trace of its own. It is linked to it in both cases. Default `'parent'`.
   */
  readonly relation?: 'parent' | 'link'
  /** Attributes for a span besides those that it has. What it throws is told to the `diag` logger of the API. Default: none. */
  readonly attributes?: (traced: Traced) => Attributes
}
