/** A span scene: a mill whose spans are collected in memory, on each store. */

import { context, SpanKind, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanLimits,
} from '@opentelemetry/sdk-trace-node'
import { type Mill, type MillOptions, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { tracing } from 'millrace/telemetry'
import { expect, onTestFinished } from 'vitest'
import { type StoreKind, storeKinds, testMill } from '../test-mill.js'

type TracingOptions = NonNullable<Parameters<typeof tracing>[0]>

export const tracedStores = [...storeKinds, 'redis'] as const

/** Registered for all that uses the API, until the test is over. */
export function collectedSpans(spanLimits: SpanLimits = {}): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanLimits, spanProcessors: [new SimpleSpanProcessor(exporter)] })
  provider.register()
  onTestFinished(async () => {
    await provider.shutdown()
    trace.disable()
    context.disable()
  })
  return exporter
}

export class SpanScene {
  readonly mill: Mill
  readonly #exporter: InMemorySpanExporter

  private constructor(mill: Mill, exporter: InMemorySpanExporter) {
    this.mill = mill
    this.#exporter = exporter
  }

  static async on(
    kind: StoreKind | 'redis',
    options: Partial<MillOptions>,
    tracingOptions: TracingOptions = {},
  ): Promise<SpanScene> {
    const exporter = collectedSpans()
    const given = { middleware: [tracing(tracingOptions)], ...options }
    return new SpanScene(kind === 'redis' ? await redisMill(given) : testMill(given, kind), exporter)
  }

  /** Those that have ended, of this name, as soon as there are so many. */
  async spans(name: string, count = 1): Promise<ReadableSpan[]> {
    const found = () => this.#exporter.getFinishedSpans().filter((span) => span.name === name)
    await expect.poll(() => found().length, { timeout: 10_000 }).toBe(count)
    return found()
  }

  async span(name: string): Promise<ReadableSpan> {
    const [span] = await this.spans(name)
    return span!
  }

  get all(): ReadableSpan[] {
    return this.#exporter.getFinishedSpans()
  }
}

async function redisMill(options: Partial<MillOptions>): Promise<Mill> {
  const redis = await startRedis()
  const mill = millrace({ store: redis.url, ...options })
  onTestFinished(async () => {
    await mill.close()
    await redis.stop()
  })
  return mill
}

/** What of a span tests look at. */
export function shown(span: ReadableSpan) {
  const { name, kind, attributes, status, events, links, parentSpanContext: parent } = span
  return {
    ...{ name, kind: SpanKind[kind], attributes, status, parent: parent?.spanId },
    exceptions: events.map(({ attributes: of }) => [of?.['exception.type'], of?.['exception.message']]),
    links: links.map(({ context: { spanId }, attributes: of }) => [of?.['messaging.message.id'], spanId]),
  }
}

export function idOf(span: ReadableSpan): string {
  return span.spanContext().spanId
}

export function traceOf(span: ReadableSpan): string {
  return span.spanContext().traceId
}

/** Runs it in a span of its own, as a request has one; answers that. */
export async function inSpan(work: () => unknown): Promise<{ readonly spanId: string; readonly traceId: string }> {
  return trace.getTracer('test').startActiveSpan('request', async (span) => {
    await work()
    span.end()
    return span.spanContext()
  })
}
