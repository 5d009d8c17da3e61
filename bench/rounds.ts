/** Figures of several rounds: their median and their spread. */

export interface Rounds {
  readonly median: number
  readonly least: number
  readonly most: number
}

/** For an even number of figures the median is the upper of the two in the middle. */
export function roundsOf(figures: readonly number[]): Rounds {
  const sorted = figures.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1]!, least: sorted[0]!, most: sorted.at(-1)! }
}

/** A text such as `3.14 (2.90 … 3.30)`. */
export function roundsText({ median, least, most }: Rounds, digits: number): string {
  return `${grouped(median, digits)} (${grouped(least, digits)} … ${grouped(most, digits)})`
}

export function grouped(figure: number, digits = 0): string {
  return figure.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** A figure for the last line: three digits after the point. */
export function figure(value: number): number {
  return Number(value.toFixed(3))
}
