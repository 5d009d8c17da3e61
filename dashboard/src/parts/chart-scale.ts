/** The chart scale: what a chart shows, ticks at round values, and the positions of values between them. */

/**
 * Round values from 0 up to the largest or just above it, in about `count` steps; whole numbers if all values are
 * whole.
 */
export function niceTicks(largest: number, count = 4): number[] {
  if (!(largest > 0)) return [0, 1]
  const raw = largest / count
  const power = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? raw
  const whole = Number.isInteger(largest) ? Math.max(1, step) : step
  const steps = Math.ceil(largest / whole - 1e-9)
  return Array.from({ length: steps + 1 }, (_, i) => Number((i * whole).toPrecision(12)))
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const timeSteps = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12].map((n) => n * hour),
  ...[1, 2, 7, 14, 30, 61, 91].map((n) => n * day),
]

/** The same for durations in ms: 5 s, 15 min, 2 h. */
export function niceDurations(largest: number, count = 4): number[] {
  if (!(largest > 0)) return [0, 1_000]
  if (largest < minute) return niceTicks(largest, count)
  const step = timeSteps.find((size) => size >= largest / count) ?? largest / count
  return Array.from({ length: Math.ceil(largest / step) + 1 }, (_, i) => i * step)
}

/** Instants at whole minutes, hours or days of the local time, at most `count` of them. */
export function timeTicks(from: number, to: number, count: number): number[] {
  const step = timeSteps.find((size) => (to - from) / size <= count) ?? (to - from) / count
  const shift = new Date(from).getTimezoneOffset() * minute
  const first = Math.ceil((from - shift) / step) * step + shift
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, i) => first + i * step)
}

/** The `points` of a line across a box, one for each number, left to right. */
export function linePoints(values: readonly number[], largest: number, width: number, height: number): string {
  const step = values.length < 2 ? 0 : width / (values.length - 1)
  return values
    .map((value, i) => `${(i * step).toFixed(1)},${(height - (value / largest) * height).toFixed(1)}`)
    .join(' ')
}

export type Stroke = 'accent' | 'good' | 'bad' | 'warn' | 'muted'

export const strokes: Readonly<Record<Stroke, string>> = {
  accent: 'stroke-accent',
  good: 'stroke-good',
  bad: 'stroke-bad',
  warn: 'stroke-warn',
  muted: 'stroke-muted',
}

/** One count over time. */
export interface Series {
  readonly name: string
  readonly stroke: Stroke
  /** One for each instant; undefined if unknown. */
  readonly values: readonly (number | undefined)[]
  /** Drawn with dashes: not everybody sees colours. Default false. */
  readonly isDashed?: boolean
}
