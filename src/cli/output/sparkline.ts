/** A sparkline: numbers as a row of bars, one column each. Pure. */

const bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const
const nothing = '·'

/** The bars, each in proportion to the largest number. A number above 0 always has a visible bar. */
export function sparkline(numbers: readonly number[]): string[] {
  const largest = Math.max(0, ...numbers)
  return numbers.map((n) => (n <= 0 ? nothing : bars[Math.max(0, Math.ceil((n / largest) * bars.length) - 1)]!))
}

/** Sums the numbers in columns of equal width. The count of columns must divide the count of numbers. */
export function inColumns(numbers: readonly number[], columns: number): number[] {
  const each = numbers.length / columns
  return Array.from({ length: columns }, (_, i) =>
    numbers.slice(i * each, (i + 1) * each).reduce((sum, n) => sum + n, 0),
  )
}
