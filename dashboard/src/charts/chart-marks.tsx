/** The chart marks: lines with gaps for unknown values, and stacked bars. */

import type { Plot } from './chart-frame.js'
import { type Series, strokes } from './chart-series.js'

interface MarksProps {
  readonly plot: Plot
  readonly series: readonly Series[]
  /** The value at the top of the plot. */
  readonly top: number
}

export function ChartLines({ plot, series, top }: MarksProps) {
  return (
    <>
      {series.map(({ name, stroke, values, isDashed }) => (
        <path
          key={name}
          d={linePath(values, plot, top)}
          class={strokes[stroke]}
          fill="none"
          stroke-width="1.5"
          stroke-linejoin="round"
          stroke-linecap="round"
          stroke-dasharray={isDashed ? '5 3' : undefined}
        />
      ))}
    </>
  )
}

function linePath(
  values: readonly (number | undefined)[],
  { left, top: y0, width, height }: Plot,
  top: number,
): string {
  const step = values.length < 2 ? 0 : width / (values.length - 1)
  return values
    .map((value, i) => {
      if (value === undefined) return ''
      const begins = values[i - 1] === undefined
      const to = `${(left + i * step).toFixed(1)} ${(y0 + height * (1 - value / top)).toFixed(1)}`
      // A single point is a dot, through its round ends.
      return `${begins ? 'M' : 'L'}${to}${begins && values[i + 1] === undefined ? 'h0' : ''}`
    })
    .join('')
}

/** One path for each series, however many bars there are. */
export function ChartBars({ plot, series, top, count }: MarksProps & { readonly count: number }) {
  const step = count < 2 ? plot.width : plot.width / (count - 1)
  const thickness = Math.max(1, Math.min(16, step * 0.7))
  const stacked = new Array<number>(count).fill(0)
  const paths = series.map(({ values }) =>
    values
      .map((value = 0, i) => {
        if (value === 0) return ''
        const from = stacked[i]!
        stacked[i] = from + value
        const y = (n: number) => (plot.top + plot.height * (1 - n / top)).toFixed(1)
        return `M${(plot.left + i * step).toFixed(1)} ${y(from)}V${y(from + value)}`
      })
      .join(''),
  )
  return (
    <>
      {series.map(({ name, stroke }, i) => (
        <path key={name} d={paths[i]} class={strokes[stroke]} stroke-width={thickness} />
      ))}
    </>
  )
}
