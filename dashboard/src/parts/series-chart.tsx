/** The series chart: counts over time as lines or stacked bars, with a hairline that a pointer or the arrow keys move. */

import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { clockWords, dayWords } from '../words/moment-words.js'
import { niceTicks, type Series, strokes, timeTicks } from './chart-scale.js'

interface ChartProps {
  readonly label: string
  /** In ms since 1970, evenly spaced. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly kind: 'lines' | 'bars'
  /** A value in words. */
  readonly words: (value: number) => string
  /** An instant in words, for the hairline. */
  readonly momentWords: (at: number) => string
  /** Ticks of the values. Default: round numbers. */
  readonly ticks?: (largest: number) => number[]
  /** In pixels. Default 180. */
  readonly height?: number
}

export function SeriesChart(props: ChartProps) {
  const { label, times, series, kind, words, momentWords, ticks = niceTicks, height = 180 } = props
  const id = useId()
  const [width, box] = useWidth()
  const [at, setAt] = useState<number | undefined>(undefined)
  const columns =
    kind === 'bars' ? times.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)) : []
  const largest = Math.max(0, ...columns, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)))
  const marks = ticks(largest)
  const top = marks.at(-1) ?? 1
  const plot = { left: 44, top: 8, width: Math.max(40, width - 52), height: height - 32 }
  const last = times.length - 1
  const place = at === undefined ? undefined : Math.min(at, last)
  const told = (i: number) =>
    `${momentWords(times[i]!)}: ${series.map(({ name, values }) => `${name} ${values[i] === undefined ? 'unknown' : words(values[i])}`).join(', ')}`
  const moveTo = (x: number) => setAt(Math.max(0, Math.min(last, Math.round(((x - plot.left) / plot.width) * last))))
  const press = (event: KeyboardEvent) => {
    const to = { ArrowLeft: (place ?? last + 1) - 1, ArrowRight: (place ?? -1) + 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    setAt(Math.max(0, Math.min(last, to)))
  }
  return (
    <figure class="min-w-0">
      <figcaption class="flex flex-wrap items-baseline gap-x-4 gap-y-1 text-sm">
        <span id={id} class="font-medium">
          {label}
        </span>
        {series.map((one) => (
          <Legend key={one.name} series={one} />
        ))}
      </figcaption>
      <div ref={box} class="mt-2">
        <div
          role="slider"
          tabIndex={0}
          aria-labelledby={id}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, last)}
          aria-valuenow={Math.max(0, place ?? last)}
          aria-valuetext={last < 0 ? 'nothing' : told(place ?? last)}
          class="chart"
          onPointerMove={(event) => moveTo(event.clientX - event.currentTarget.getBoundingClientRect().left)}
          onPointerLeave={() => setAt(undefined)}
          onBlur={() => setAt(undefined)}
          onKeyDown={press}
        >
          <svg
            class="block w-full overflow-visible"
            height={height}
            viewBox={`0 0 ${width} ${height}`}
            aria-hidden="true"
          >
            <ChartFrame plot={plot} times={times} marks={marks} words={words} />
            {kind === 'lines' ? (
              <ChartLines plot={plot} series={series} top={top} />
            ) : (
              <ChartBars plot={plot} series={series} top={top} count={times.length} />
            )}
            {place !== undefined && last > 0 && (
              <line
                class="stroke-ink"
                stroke-dasharray="2 2"
                x1={plot.left + (place / last) * plot.width}
                x2={plot.left + (place / last) * plot.width}
                y1={plot.top}
                y2={plot.top + plot.height}
              />
            )}
          </svg>
        </div>
      </div>
      <p class="h-5 truncate text-xs text-muted">{place !== undefined && last >= 0 && told(place)}</p>
      <ChartTable label={label} times={times} series={series} words={words} momentWords={momentWords} />
    </figure>
  )
}

function Legend({ series: { name, stroke, isDashed } }: { readonly series: Series }) {
  return (
    <span class="inline-flex items-center gap-1.5 text-xs text-muted">
      <svg width="16" height="8" aria-hidden="true">
        <line
          x1="0"
          x2="16"
          y1="4"
          y2="4"
          class={strokes[stroke]}
          stroke-width="2.5"
          stroke-dasharray={isDashed ? '4 2' : undefined}
        />
      </svg>
      {name}
    </span>
  )
}

/** The width of an element as it changes. */
function useWidth(): [number, { current: HTMLDivElement | null }] {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(600)
  useEffect(() => {
    if (box.current === null) return
    const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.round(entry.contentRect.width)))
    watch.observe(box.current)
    return () => watch.disconnect()
  }, [])
  return [width, box]
}

/** The area of the marks in a chart. */
interface Plot {
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

/** The lines of the values with their labels, and the instants below. */
function ChartFrame({ plot, times, marks, words }: FrameProps) {
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

interface MarksProps {
  readonly plot: Plot
  readonly series: readonly Series[]
  /** The value at the top of the plot. */
  readonly top: number
}

/** Lines with gaps for unknown values, and stacked bars. */
function ChartLines({ plot, series, top }: MarksProps) {
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
function ChartBars({ plot, series, top, count }: MarksProps & { readonly count: number }) {
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

interface ChartTableProps {
  readonly label: string
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly words: (value: number) => string
  readonly momentWords: (at: number) => string
}

const mostRows = 120

/** The same figures as text, newest first; drawn when it is opened. */
function ChartTable({ label, times, series, words, momentWords }: ChartTableProps) {
  const [isOpen, setOpen] = useState(false)
  const places = times.map((_, i) => i).filter((i) => series.some(({ values }) => (values[i] ?? 0) > 0))
  return (
    <details class="text-xs" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="w-fit text-muted">Figures</summary>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached
        <section class="mt-1 max-h-60 overflow-auto" tabIndex={0} aria-label={`Figures: ${label}`}>
          <table class="w-full text-start">
            <thead>
              <tr>
                <th class="text-start font-medium">When</th>
                {series.map(({ name }) => (
                  <th key={name} class="text-end font-medium">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {places
                .slice(-mostRows)
                .reverse()
                .map((i) => (
                  <tr key={i}>
                    <td>{momentWords(times[i]!)}</td>
                    {series.map(({ name, values }) => (
                      <td key={name} class="text-end">
                        {values[i] === undefined ? '–' : words(values[i])}
                      </td>
                    ))}
                  </tr>
                ))}
            </tbody>
          </table>
          {places.length === 0 && <p class="text-muted">Nothing happened.</p>}
          {places.length > mostRows && <p class="text-muted">The last {mostRows} in which something happened.</p>}
        </section>
      )}
    </details>
  )
}
