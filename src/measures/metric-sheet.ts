/** The metric sheet: the samples of one scrape, by metric. */

import { labelText } from './label-text.js'
import { type LabelsOf, type MetricName, metricFamilies } from './metric-families.js'

export interface Sample {
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

export class MetricSheet {
  readonly #samples = new Map<MetricName, Sample[]>()
  /** The labels that each metric has so far. */
  readonly #told = new Map<MetricName, Set<string>>()

  /** Leaves out an unknown value. */
  tell<Name extends MetricName>(name: Name, labels: LabelsOf<Name>, value: number | undefined): void {
    if (value !== undefined) this.#add(name, labels, [{ suffix: '', value }])
  }

  tellHistogram<Name extends MetricName>(
    name: Name,
    labels: LabelsOf<Name>,
    { bounds, counts, sum }: HistogramSums,
  ): void {
    let count = 0
    const buckets = [...bounds, Number.POSITIVE_INFINITY].map((le, i) => {
      count += counts[i] ?? 0
      return { suffix: '_bucket', le, value: count }
    })
    this.#add(name, labels, [...buckets, { suffix: '_sum', value: sum }, { suffix: '_count', value: count }])
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
  #add(name: MetricName, given: Readonly<Record<string, string>>, values: readonly Omit<Sample, 'labels'>[]): void {
    const labels = labelText(metricFamilies[name].labels, given)
    const told = this.#told.get(name) ?? new Set()
    if (told.has(labels)) return
    this.#told.set(name, told.add(labels))
    const samples = this.#samples.get(name) ?? []
    for (const value of values) samples.push({ ...value, labels })
    this.#samples.set(name, samples)
  }
}
