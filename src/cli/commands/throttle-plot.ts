/** The plot of a simulated throttle, as lines of a terminal: the starts in each span of time, and their sum. */

import { exactDuration } from '../../core/values/duration.js'
import { count } from '../terminal/figures.js'
import type { Simulation } from './throttle-simulation.js'

const barRows = 6
const sumRows = 8
/** The width without a terminal. */
const usualWidth = 80
const least = 20

/** Round spans for a column, so that the axis can be read. */
const spans = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000,
].concat(
  [15, 20, 30, 40, 60, 90, 120, 180, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200].map(
    (s) => s * 1_000,
  ),
)

interface PlotOptions {
  readonly forMs: number
  /** Columns of the terminal; Infinity if there is none. */
  readonly width: number
  readonly dim: (text: string) => string
}

export function plotLines({ starts, arrived }: Simulation, { forMs, width, dim }: PlotOptions): string[] {
  const top = Math.max(starts.length, arrived?.length ?? 0, 1)
  const gutter = count(top).length
  const room = Math.max(least, Math.min(width, usualWidth) - gutter - 3)
  const spanMs = spans.find((span) => forMs / span <= room) ?? Math.ceil(forMs / room)
  const columns = Math.max(1, Math.ceil(forMs / spanMs))
  const scale = { spanMs, columns }
  const at = counts(starts, scale)
  const perMark = Math.ceil(Math.max(1, ...at) / barRows)
  const marked = perMark === 1 ? 'a mark for each job' : `a mark for up to ${count(perMark)}`
  const row = (label: string, cells: string) => `${dim(`${label.padStart(gutter)} │`)}${cells}`.trimEnd()
  return [
    dim(`started in each ${exactDuration(spanMs)}, ${marked}`),
    ...barLines(at, perMark).map((cells, i) => row(i === 0 ? count(Math.max(...at)) : '', cells)),
    ...axisLines(scale, gutter).map(dim),
    dim(`started in all •${arrived === undefined ? '' : ', enqueued ·'}`),
    ...sumLines(at, arrived && counts(arrived, scale), top).map((cells, i) =>
      row(i === 0 ? count(top) : i === sumRows - 1 ? '0' : '', cells),
    ),
    ...axisLines(scale, gutter).map(dim),
  ]
}

interface Scale {
  readonly spanMs: number
  readonly columns: number
}

/** The number of instants in each column; the very last moment belongs to the last column. */
function counts(instants: readonly number[], { spanMs, columns }: Scale): number[] {
  const found = Array.from({ length: columns }, () => 0)
  for (const at of instants) found[Math.min(columns - 1, Math.floor(at / spanMs))]! += 1
  return found
}

function barLines(at: readonly number[], perMark: number): string[] {
  const heights = at.map((n) => Math.ceil(n / perMark))
  const rows = Math.max(1, ...heights)
  return Array.from({ length: rows }, (_, i) => heights.map((height) => (height >= rows - i ? '•' : ' ')).join(''))
}

/** `•` marks the sum of starts at the end of each column, `·` the sum of arrivals. */
function sumLines(starts: readonly number[], arrived: readonly number[] | undefined, top: number): string[] {
  const started = levels(starts, top)
  const come = arrived && levels(arrived, top)
  return Array.from({ length: sumRows }, (_, i) => {
    const level = sumRows - 1 - i
    return started.map((own, column) => (own === level ? '•' : come?.[column] === level ? '·' : ' ')).join('')
  })
}

function levels(at: readonly number[], top: number): number[] {
  let sum = 0
  return at.map((n) => {
    sum += n
    return Math.round((sum / top) * (sumRows - 1))
  })
}

/** A tick at the beginning and about every twelve columns, each with its time below it. */
function axisLines({ spanMs, columns }: Scale, gutter: number): string[] {
  const step = spans.find((span) => span % spanMs === 0 && span / spanMs >= 12) ?? spanMs * columns
  const every = step / spanMs
  const line = Array.from({ length: columns }, (_, i) => (i % every === 0 ? '┬' : '─')).join('')
  let labels = ''
  for (let i = 0; i < columns; i += every) {
    const text = i === 0 ? '0' : exactDuration(i * spanMs)
    if (i + text.length <= columns) labels = labels.padEnd(i) + text
  }
  const before = ' '.repeat(gutter + 1)
  return [`${before}└${line}`, `${before} ${labels}`]
}
