/** The spark line: the last minutes of one or more counts, small enough for a row of a table. */

import { linePoints } from './chart-scale.js'
import { type Stroke, strokes } from './chart-series.js'

interface SparkProps {
  /** The label for screen readers. */
  readonly label: string
  readonly series: readonly { readonly stroke: Stroke; readonly values: readonly number[] }[]
}

const width = 120
const height = 24

export function Sparkline({ label, series }: SparkProps) {
  const largest = Math.max(1, ...series.flatMap(({ values }) => values))
  return (
    <svg
      viewBox={`0 -1.5 ${width} ${height + 3}`}
      preserveAspectRatio="none"
      class="block h-6 w-full overflow-visible"
      role="img"
      aria-label={label}
    >
      <line x1="0" x2={width} y1={height} y2={height} class="stroke-line" vector-effect="non-scaling-stroke" />
      {series
        .filter(({ values }) => values.some((value) => value > 0))
        .map(({ stroke, values }) => (
          <polyline
            key={stroke}
            points={linePoints(values, largest, width, height)}
            class={strokes[stroke]}
            fill="none"
            stroke-width="1.25"
            stroke-linejoin="round"
            vector-effect="non-scaling-stroke"
          />
        ))}
    </svg>
  )
}
