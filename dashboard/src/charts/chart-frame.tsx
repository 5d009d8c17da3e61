/** The chart frame: the lines of the values with their labels, and the instants below. */

import { clockWords, dayWords } from '../words/moment-words.js'
import { timeTicks } from './chart-scale.js'

/** The area of the marks in a chart. */
export interface Plot {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

interface FrameProps {
  readonly plot: Plot
  readonly times: readonly number[]
  readonly marks: readonly number[]
  readonly words: (value: number) => string
}

const dayMs = 86_400_000

export function ChartFrame({ plot, times, marks, words }: FrameProps) {
  const top = marks.at(-1) ?? 1
  const [from = 0, to = 0] = [times[0], times.at(-1)]
  const instants = to > from ? timeTicks(from, to, Math.max(2, Math.floor(plot.width / 80))) : []
  const inWords = to - from > 2 * dayMs ? dayWords : clockWords
  return (
    <g class="text-xs">
      {marks.map((mark) => {
        const y = plot.top + plot.height * (1 - mark / top)
        return (
          <g key={mark}>
            <line class="stroke-line" x1={plot.left} x2={plot.left + plot.width} y1={y} y2={y} />
            <text class="fill-muted" x={plot.left - 6} y={y + 4} text-anchor="end">
              {words(mark)}
            </text>
          </g>
        )
      })}
      {instants.map((at) => (
        <text
          key={at}
          class="fill-muted"
          x={plot.left + ((at - from) / (to - from)) * plot.width}
          y={plot.top + plot.height + 17}
          text-anchor="middle"
        >
          {inWords(at)}
        </text>
      ))}
    </g>
  )
}
