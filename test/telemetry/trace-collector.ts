/** A trace collector: takes what processes export by OTLP over HTTP, as JSON. */

import type { IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { poll } from '#src/store-testing/servers/poll.js'
import { served } from '../web/web-scene.js'

interface Value {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
}

interface Attribute {
  readonly key: string
  readonly value: Value
}

interface ExportedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly Attribute[]
  readonly links?: readonly { readonly spanId: string; readonly traceId: string }[]
  readonly status: { readonly code?: number; readonly message?: string }
}

interface Export {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly ExportedSpan[] }[] }[]
}

export interface CollectedSpan extends Omit<ExportedSpan, 'attributes' | 'links'> {
  readonly attributes: Readonly<Record<string, unknown>>
  /** The ids of the spans that it is linked to. */
  readonly links: readonly string[]
}

export class TraceCollector {
  /** What an exporter is told: `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly #spans: CollectedSpan[]

  private constructor(url: string, spans: CollectedSpan[]) {
    this.url = url
    this.#spans = spans
  }

  static async start(): Promise<TraceCollector> {
    const spans: CollectedSpan[] = []
    const url = await served(async (request, response) => {
      spans.push(...(await spansIn(request)))
      response.setHeader('content-type', 'application/json').end('{}')
    })
    return new TraceCollector(url, spans)
  }

  /** All that have come, as soon as there is one of each of these names. */
  async spans(names: readonly string[], withinMs = 30_000): Promise<readonly CollectedSpan[]> {
    const isThere = (name: string) => this.#spans.some((span) => span.name === name)
    return poll(async () => (names.every(isThere) ? this.#spans : undefined), {
      what: `spans ${names.filter((name) => !isThere(name)).join(', ')} have come`,
      withinMs,
    })
  }

  /** Those of this name, as soon as there are so many. */
  async named(name: string, count = 1, withinMs = 30_000): Promise<readonly CollectedSpan[]> {
    const found = () => this.#spans.filter((span) => span.name === name)
    return poll(async () => (found().length >= count ? found() : undefined), {
      what: `${count} spans ${name} have come`,
      withinMs,
    })
  }
}

async function spansIn(request: IncomingMessage): Promise<CollectedSpan[]> {
  const { resourceSpans } = (await json(request)) as Export
  const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
  return spans.map((span) => ({
    ...span,
    attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, plainValue(value)])),
    links: (span.links ?? []).map(({ spanId }) => spanId),
  }))
}

function plainValue({ stringValue, intValue, doubleValue }: Value): unknown {
  return stringValue ?? doubleValue ?? (intValue === undefined ? undefined : Number(intValue))
}

/** The spans as an outline: each below its parent, further in. */
export function outline(spans: readonly CollectedSpan[], parent?: string, depth = 0): string[] {
  return spans
    .filter(({ parentSpanId = '' }) => parentSpanId === (parent ?? ''))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, spanId }) => [`${'  '.repeat(depth)}${name}`, ...outline(spans, spanId, depth + 1)])
}
