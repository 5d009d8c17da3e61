/** The accepted format: which of the two expositions the `Accept` header of a scrape asks for. Pure. */

import type { ExpositionFormat } from './exposition.js'

interface MediaRange {
  readonly type: string
  readonly version: string | undefined
  /** The preference, from 0 to 1. */
  readonly weight: number
}

/** OpenMetrics if the header names it and prefers it no less than plain text; otherwise the text of Prometheus. */
export function acceptedFormat(accept: string | null | undefined): ExpositionFormat {
  const ranges = (accept ?? '').split(',').map(rangeOf)
  const weightOf = (isMeant: (range: MediaRange) => boolean) =>
    Math.max(0, ...ranges.filter(isMeant).map(({ weight }) => weight))
  const open = weightOf(
    ({ type, version }) => type === 'application/openmetrics-text' && (version === undefined || version === '1.0.0'),
  )
  const plain = weightOf(({ type }) => type === 'text/plain')
  return open > 0 && open >= plain ? 'openmetrics' : 'prometheus'
}

function rangeOf(text: string): MediaRange {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim().toLowerCase())
  const parameters = new Map(rest.map((one) => one.split('=', 2) as [string, string | undefined]))
  const weight = Number(parameters.get('q') ?? 1)
  return { type, version: parameters.get('version'), weight: Number.isFinite(weight) ? weight : 0 }
}
