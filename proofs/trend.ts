/** The trend of a series: its slope by least squares, and the standard error of that. Pure. */

export interface Trend {
  /** The growth of the series in an hour. */
  readonly perHour: number
  readonly error: number
  readonly mean: number
}

/**
 * `stepHours`: from one value to the next. Neighbours depend on each other. So the error counts n (1 - r) / (1 + r)
 * values instead of n, where r is the correlation of neighbours (Bartlett's formula for a first-order series).
 */
export function trend(values: readonly number[], stepHours: number): Trend {
  const n = values.length
  const mean = values.reduce((sum, value) => sum + value, 0) / n
  const middle = (n - 1) / 2
  const spread = values.reduce((sum, _, i) => sum + (i - middle) ** 2, 0)
  const slope = values.reduce((sum, value, i) => sum + (i - middle) * (value - mean), 0) / spread
  const rests = values.map((value, i) => value - mean - slope * (i - middle))
  const squares = rests.reduce((sum, rest) => sum + rest ** 2, 0)
  const neighbours = rests.slice(1).reduce((sum, rest, i) => sum + rest * rests[i]!, 0)
  const r = squares === 0 ? 0 : Math.min(0.9, Math.max(0, neighbours / squares))
  const error = Math.sqrt((squares / Math.max(1, n - 2) / spread) * ((1 + r) / (1 - r)))
  return { perHour: slope / stepHours, error: error / stepHours, mean }
}
