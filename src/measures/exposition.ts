/** The exposition: the samples of one scrape by metric, and their text in the form of Prometheus or of OpenMetrics. Pure. */

import { type LabelsOf, type MetricFamily, type MetricName, metricFamilies } from './metric-families.js'

interface Sample {
  /** The suffix of the metric's name, such as `_bucket`. */
  readonly suffix: string
  /** As text; empty if there are none. */
  readonly labels: string
  /** For a bucket: its upper bound. */
  readonly le?: number
  readonly value: number
}

/** A histogram: the counts in its classes, and the sum. */
interface HistogramSums {
  /** Upper bounds, ascending, without the infinite one. */
  readonly bounds: readonly number[]
  /** The count in each class; the last class has no bound. */
  readonly counts: readonly number[]
  readonly sum: number
}

export class MetricSamples {
  readonly #samples = new Map<MetricName, Sample[]>()
  /** The labels that each metric has so far. */
  readonly #known = new Map<MetricName, Set<string>>()

  /** Leaves out an unknown value. */
  add<Name extends MetricName>(name: Name, labels: LabelsOf<Name>, value: number | undefined): void {
    if (value !== undefined) this.#put(name, labels, [{ suffix: '', value }])
  }

  addHistogram<Name extends MetricName>(
    name: Name,
    labels: LabelsOf<Name>,
    { bounds, counts, sum }: HistogramSums,
  ): void {
    let count = 0
    const buckets = [...bounds, Number.POSITIVE_INFINITY].map((le, i) => {
      count += counts[i] ?? 0
      return { suffix: '_bucket', le, value: count }
    })
    this.#put(name, labels, [...buckets, { suffix: '_sum', value: sum }, { suffix: '_count', value: count }])
  }

  /** The metrics with a sample, in the order of the catalogue. */
  get metrics(): readonly (readonly [MetricName, readonly Sample[]])[] {
    const names = Object.keys(metricFamilies) as MetricName[]
    return names.flatMap((name) => {
      const samples = this.#samples.get(name)
      return samples === undefined ? [] : [[name, samples] as const]
    })
  }

  /** Prometheus refuses a whole scrape because of one duplicate sample: of two, the first counts. */
  #put(name: MetricName, given: Readonly<Record<string, string>>, values: readonly Omit<Sample, 'labels'>[]): void {
    const labels = labelText(metricFamilies[name].labels, given)
    const known = this.#known.get(name) ?? new Set()
    if (known.has(labels)) return
    this.#known.set(name, known.add(labels))
    const samples = this.#samples.get(name) ?? []
    for (const value of values) samples.push({ ...value, labels })
    this.#samples.set(name, samples)
  }
}

/** The labels as both formats write them, `queue="mail",state="dead"`. `given` has a value for each of the names. */
function labelText(names: readonly string[], given: Readonly<Record<string, string>>): string {
  return names.map((name) => `${name}="${escapedText(given[name]!.toWellFormed())}"`).join(',')
}

/** Metrics count time in seconds. */
export function seconds(ms: number): number {
  return ms / 1_000
}

export type ExpositionFormat = 'prometheus' | 'openmetrics'

/** The content type of each: the text of Prometheus 0.0.4, or OpenMetrics 1.0. */
export const expositionTypes: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

export function expositionText(samples: MetricSamples, format: ExpositionFormat): string {
  const lines: string[] = []
  for (const [name, ofMetric] of samples.metrics) {
    lines.push(...headOf(name, metricFamilies[name], format))
    for (const sample of ofMetric) lines.push(`${name}${sample.suffix}${labelsOf(sample, format)} ${sample.value}`)
  }
  if (format === 'openmetrics') lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

/** OpenMetrics names a counter without its `_total`, and states units. */
function headOf(name: string, { type, unit, help }: MetricFamily, format: ExpositionFormat): string[] {
  const isOpen = format === 'openmetrics'
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name
  return [
    `# HELP ${family} ${isOpen ? escapedText(help) : help}`,
    `# TYPE ${family} ${type}`,
    ...(isOpen && unit !== undefined ? [`# UNIT ${family} ${unit}`] : []),
  ]
}

function labelsOf({ labels, le }: Sample, format: ExpositionFormat): string {
  if (le === undefined) return labels === '' ? '' : `{${labels}}`
  return `{${labels}${labels === '' ? '' : ','}le="${boundText(le, format)}"}`
}

/** OpenMetrics writes whole bounds as `1.0`. */
function boundText(le: number, format: ExpositionFormat): string {
  if (le === Number.POSITIVE_INFINITY) return '+Inf'
  return format === 'openmetrics' && Number.isInteger(le) ? le.toFixed(1) : String(le)
}

function escapedText(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`))
}

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
