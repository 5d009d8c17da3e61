/** The series chart: counts over time as lines or stacked bars, with a hairline that a pointer or the arrow keys move. */

import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { ChartFrame } from './chart-frame.js'
import { ChartBars, ChartLines } from './chart-marks.js'
import { niceTicks } from './chart-scale.js'
import { type Series, strokes } from './chart-series.js'
import { ChartTable } from './chart-table.js'

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
}

const height = 180

export function SeriesChart({ label, times, series, kind, words, momentWords, ticks = niceTicks }: ChartProps) {
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
