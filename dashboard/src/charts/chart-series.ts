/** The chart series: one count over time, and the colours that it may have. */

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
  /** One for each instant; undefined where nothing is known. */
  readonly values: readonly (number | undefined)[]
  /** Drawn with dashes: a colour alone tells nothing to many. Default false. */
  readonly isDashed?: boolean
}
