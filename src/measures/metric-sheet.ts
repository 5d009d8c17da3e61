/** The metric sheet: the samples of one scrape, by metric. */

import { labelText } from './label-text.js'
import { type LabelsOf, type MetricName, metricFamilies } from './metric-families.js'

export interface Sample {
  /** What follows the name of the metric, as `_bucket`. */
  readonly suffix: string
  /** As they are written; empty where there are none. */
  readonly labels: string
  /** Of a bucket: its upper bound. */
  readonly le?: number
  readonly value: number
}

/** A histogram as it is told: how many at most a bound, and in all. */
interface HistogramSums {
  /** Upper bounds, ascending, without the infinite one. */
  readonly bounds: readonly number[]
  /** How many lie in each class; the last has no bound. */
  readonly counts: readonly number[]
  readonly sum: number
}

export class MetricSheet {
  readonly #samples = new Map<MetricName, Sample[]>()
  /** The labels that were told of each metric. */
  readonly #told = new Map<MetricName, Set<string>>()

  /** What is not known is not told. */
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

  /** Those of which there is a sample, in the order of the catalogue. */
  get metrics(): readonly (readonly [MetricName, readonly Sample[]])[] {
    const names = Object.keys(metricFamilies) as MetricName[]
    return names.flatMap((name) => {
      const samples = this.#samples.get(name)
      return samples === undefined ? [] : [[name, samples] as const]
    })
  }

  /** Prometheus refuses a whole scrape for one sample that comes twice: of two the first counts. */
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
