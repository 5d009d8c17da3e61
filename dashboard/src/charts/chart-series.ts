/** The chart series: one count over time, and its possible colours. */

export type Stroke = 'accent' | 'good' | 'bad' | 'warn' | 'muted'

export const strokes: Readonly<Record<Stroke, string>> = {
  accent: 'stroke-accent',
  good: 'stroke-good',
  bad: 'stroke-bad',
  warn: 'stroke-warn',
  muted: 'stroke-muted',
}

export interface Series {
  readonly name: string
  readonly stroke: Stroke
  /** One for each instant; undefined if unknown. */
  readonly values: readonly (number | undefined)[]
  /** Drawn with dashes: not everybody sees colours. Default false. */
  readonly isDashed?: boolean
}
