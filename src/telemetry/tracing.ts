/**
 * Tracing: middleware that makes a span for each enqueue, each run and each settle. Jobs carry the span that enqueued
 * them.
 */

import {
  type Attributes,
  type Context,
  context,
  diag,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import { messageOf } from '../core/messages/describe.js'
import { packageVersion } from '../core/package-files.js'
import type { EndAnswer, EnqueueItem, Middleware, RunEnd, TaskRun } from '../core/task/middleware.js'
import { carriedOf, spanContextOf } from './carried-context.js'
import {
  commonTrace,
  endAttributes,
  type Fault,
  faultBy,
  faultOf,
  faultOfAnswer,
  itemAttributes,
  messagesOf,
  type Operation,
  operationAttributes,
  queueOf,
  type RunMessage,
  runAttributes,
  storedAttributes,
} from './span-attributes.js'

/**
 * Middleware that traces the enqueues and runs of a mill: `millrace({ …, middleware: [tracing()] })`, best as the
 * first. Jobs carry the span that enqueued them in their origin, 60 to 600 bytes each. Without an SDK it makes no
 * spans, but jobs still carry the span that surrounds an enqueue.
 */
export function tracing(options: TracingOptions = {}): Middleware {
  return new Tracing(options)
}

/** The options of tracing. */
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

/** The subject of a span: an enqueue of these items, or a run. */
export type Traced = { readonly items: readonly EnqueueItem[] } | { readonly run: TaskRun }

const spanKinds = { send: SpanKind.PRODUCER, process: SpanKind.CONSUMER, settle: SpanKind.CLIENT } as const
/** The most links and the most exceptions of a span: the default limits of SDKs, and as many as a backend can show. */
const mostLinks = 128
const mostExceptions = 8

/** The span of a run, and the context in which its handler runs. */
interface OpenRun {
  readonly span: Span
  readonly context: Context
}

class Tracing implements Middleware {
  readonly #options: TracingOptions
  readonly #tracer: Tracer
  /** By the context of the run. */
  readonly #open = new WeakMap<object, OpenRun>()

  constructor(options: TracingOptions) {
    this.#options = options
    this.#tracer = (options.tracerProvider ?? trace).getTracer('millrace', packageVersion())
  }

  async enqueue(items: EnqueueItem[], next: () => Promise<void>): Promise<void> {
    const [first] = items
    if (first === undefined) return next()
    const parent = withParent(context.active(), first)
    const span = this.#begin('send', queueOf(items), parent, {
      attributes: { ...itemAttributes(items), ...this.#asked({ items }) },
    })
    const carried = carriedOf(span.spanContext())
    if (carried !== undefined) for (const item of items) item.origin = { ...item.origin, trace: carried }
    try {
      await context.with(trace.setSpan(parent, span), next)
      if (items.length === 1) span.setAttributes(storedAttributes(first))
      const refusals = items.map(({ refusal }) => refusal).filter((refusal) => refusal !== undefined)
      fail(span, refusals.map(faultBy))
    } catch (error) {
      fail(span, [faultBy(error)])
      throw error
    } finally {
      span.end()
    }
  }

  run(run: TaskRun, next: () => Promise<unknown>): Promise<unknown> {
    const opened = this.#beginRun(run, messagesOf(run), Date.now())
    this.#open.set(run.ctx, opened)
    return context.with(opened.context, next)
  }

  async settle(run: TaskRun, ends: readonly RunEnd[], answers: Promise<readonly EndAnswer[]>): Promise<void> {
    const messages = messagesOf(run)
    const faults = ends.map(faultOf).filter((fault) => fault !== undefined)
    const opened = this.#open.get(run.ctx) ?? this.#missed(run, messages, ends, faults)
    this.#open.delete(run.ctx)
    if (opened !== undefined) end(opened.span, ends, faults)
    const parent = opened?.context ?? this.#parentOf(messages)
    const span = this.#begin('settle', run.ctx.job.queue, parent, { attributes: endAttributes(ends) })
    fail(span, (await answers).filter((answer) => answer !== 'ok').map(faultOfAnswer))
    span.end()
    // The process of an isolated job ends with its job, and unsent spans would be lost with it.
    if (run.task.kind === 'plain' && run.task.isolation !== undefined) await flush(this.#options.tracerProvider)
  }

  #begin(operation: Operation, queue: string | undefined, parent: Context, { attributes, ...more }: SpanOptions): Span {
    const name = queue === undefined ? operation : `${operation} ${queue}`
    const all = { ...operationAttributes(operation, queue), ...attributes }
    return this.#tracer.startSpan(name, { ...more, kind: spanKinds[operation], attributes: all }, parent)
  }

  /** `at`: in ms since 1970. */
  #beginRun(run: TaskRun, messages: readonly RunMessage[], at: number): OpenRun {
    const parent = this.#parentOf(messages)
    const span = this.#begin('process', run.ctx.job.queue, parent, {
      ...{ startTime: at, links: linksOf(messages) },
      attributes: { ...runAttributes(run, messages, at), ...this.#asked({ run }) },
    })
    return { span, context: trace.setSpan(parent, span) }
  }

  /** For a run that ended out of sight: its process died, or an error kept its handler from being called. */
  #missed(
    run: TaskRun,
    messages: readonly RunMessage[],
    ends: readonly RunEnd[],
    faults: readonly Fault[],
  ): OpenRun | undefined {
    if (faults.length === 0) return undefined
    return this.#beginRun(run, messages, Date.now() - Math.max(...ends.map(({ runMs }) => runMs)))
  }

  /** Not the context in which the worker was started: a run belongs to its enqueue, or to nothing. */
  #parentOf(messages: readonly RunMessage[]): Context {
    const common = this.#options.relation === 'link' ? undefined : commonTrace(messages)
    return common === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(common))
  }

  #asked(traced: Traced): Attributes {
    try {
      return this.#options.attributes?.(traced) ?? {}
    } catch (error) {
      diag.error(`millrace: the option attributes of tracing() threw: ${messageOf(error)}`)
      return {}
    }
  }
}

/** If no tracer knows the span of a request, use the request's own headers, which the item carries. */
function withParent(active: Context, { origin }: EnqueueItem): Context {
  if (origin?.trace === undefined || trace.getSpanContext(active) !== undefined) return active
  return trace.setSpanContext(active, spanContextOf(origin.trace))
}

/** One link for each payload whose enqueue is known. */
function linksOf(messages: readonly RunMessage[]): Link[] {
  const links = messages.flatMap(({ id, traces }) =>
    traces.flatMap((one) =>
      one === undefined ? [] : [{ context: spanContextOf(one), attributes: { 'messaging.message.id': id } }],
    ),
  )
  return links.slice(0, mostLinks)
}

function end(span: Span, ends: readonly RunEnd[], faults: readonly Fault[]): void {
  const [first, ...others] = ends
  if (first !== undefined && others.length === 0) span.setAttribute('millrace.outcome', first.kind)
  fail(span, faults)
  span.end()
}

/** Does nothing without faults. */
function fail(span: Span, faults: readonly Fault[]): void {
  const [first] = faults
  if (first === undefined) return
  for (const { error } of faults.slice(0, mostExceptions))
    if (error !== undefined) span.recordException(error instanceof Error ? error : messageOf(error))
  span.setAttribute('error.type', first.type)
  span.setStatus({ code: SpanStatusCode.ERROR, message: first.message })
}

/** Makes an SDK send its collected spans. The API has no method for it; its providers do. */
async function flush(given: TracerProvider | undefined): Promise<void> {
  const global = given ?? trace.getTracerProvider()
  const provider = global instanceof ProxyTracerProvider ? global.getDelegate() : global
  if ('forceFlush' in provider && typeof provider.forceFlush === 'function') await provider.forceFlush()
}
