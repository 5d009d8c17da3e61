/** The view of all queues that `stats --watch` draws: the last hour of each, its pace, and its state. Pure. */

import type { QueueHistory } from '../../client/admin/queue-history.js'
import { formatDuration } from '../../core/values/duration.js'
import { isUnserved } from '../../measures/worker-counts.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import { shortened, widthOf } from '../printable.js'
import { count, counted, timeOfDay } from './figures.js'
import type { Terminal } from './terminal.js'

interface QueueView {
  /** The first line. */
  readonly title: string
  readonly at: Date
  readonly depths: readonly (QueueDepth & { readonly serving?: number })[]
  /** The last 60 minutes of each queue, with the current minute last. */
  readonly histories: readonly QueueHistory[]
  /** Lines that follow, if there is room. */
  readonly below: readonly string[]
}

type Colors = Terminal['colors']

interface Figure {
  readonly title: string
  readonly width: number
  cell(row: ViewRow): string
  paint?(text: string, row: ViewRow): string
}

interface ViewRow {
  readonly name: string
  readonly depth: Pick<QueueDepth, 'ready' | 'running' | 'dead' | 'lagMs'>
  /** By minute. */
  readonly done: readonly number[]
  readonly wrong: readonly number[]
  readonly inPerMinute: number
  readonly outPerMinute: number
  readonly note: string
}

/** Widths that a sparkline of 60 minutes can have. */
const sparkWidths = [60, 30, 20, 15, 12, 10]
const nameWidths = { least: 10, most: 32 }
/** The processes have reported a minute this long after its end. */
const toldWithinMs = 10_000

/** At most `rows` lines of at most `columns`. */
export function queueViewLines(
  view: QueueView,
  { columns, rows, colors }: { readonly columns: number; readonly rows: number; readonly colors: Colors },
): string[] {
  const all = view.depths.map((depth) => rowOf(depth, view))
  const figures = figuresIn(colors)
  const figuresWidth = figures.reduce((sum, { width }) => sum + width + 2, 0)
  const longest = Math.max(...all.map(({ name }) => widthOf(name)), nameWidths.least)
  const leftFor = (spark: number) => columns - figuresWidth - spark - 2
  const spark = sparkWidths.find((width) => leftFor(width) >= Math.min(longest, nameWidths.most)) ?? sparkWidths.at(-1)!
  const name = Math.max(nameWidths.least, Math.min(longest, nameWidths.most, leftFor(spark)))

  const line = (row: ViewRow) =>
    [
      fitted(row.name, name),
      sparkOf(row, spark, colors),
      ...figures.map(({ width, cell, paint }) => {
        const text = cell(row)
        const space = ' '.repeat(Math.max(0, width - widthOf(text)))
        return space + (paint?.(text, row) ?? text)
      }),
    ].join('  ')
  const titles = [
    fitted('queue', name),
    fitted('last hour', spark),
    ...figures.map(({ title, width }) => title.padStart(width)),
  ].join('  ')
  const total = all.length > 1 ? [colors.bold(line(totalOf(all)))] : []
  const room = Math.max(1, rows - 5 - total.length)
  const shown = all.length <= room ? all : byInterest(all).slice(0, room - 1)
  const more = all.length - shown.length
  return [
    heading(view, columns, colors),
    '',
    colors.dim(shortened(titles, columns)),
    ...shown.map(line),
    ...(more > 0 ? [colors.dim(`… ${counted(more, 'queue')} more, with less to do`)] : []),
    ...total,
    '',
    colors.dim(
      shortened(`q quits · in, out: jobs per minute · bars: jobs that ended, red: some failed${noteOf(all)}`, columns),
    ),
    ...view.below,
  ].slice(0, rows)
}

function heading({ title, at }: QueueView, columns: number, colors: Colors): string {
  const time = timeOfDay(at)
  const text = shortened(title, columns - time.length - 2)
  return colors.bold(text) + ' '.repeat(columns - widthOf(text) - time.length) + time
}

function figuresIn(colors: Colors): Figure[] {
  const whole = (
    title: string,
    width: number,
    of: (row: ViewRow) => number,
    paint?: (text: string) => string,
  ): Figure => ({
    title,
    width,
    cell: (row) => short(of(row)),
    ...(paint && { paint: (text, row) => (of(row) > 0 ? paint(text) : text) }),
  })
  return [
    whole('in', 5, ({ inPerMinute }) => inPerMinute),
    whole('out', 5, ({ outPerMinute }) => outPerMinute),
    whole('ready', 6, ({ depth }) => depth.ready),
    whole('running', 7, ({ depth }) => depth.running, colors.green),
    whole('dead', 5, ({ depth }) => depth.dead, colors.red),
    {
      title: 'lag',
      width: 7,
      cell: ({ depth: { lagMs } }) => (lagMs === 0 ? '-' : shortened(formatDuration(roughly(lagMs)), 7)),
    },
  ]
}

function rowOf(depth: QueueView['depths'][number], { histories, at }: QueueView): ViewRow {
  const points = histories.find(({ queue }) => queue === depth.queue)?.points ?? []
  const told = points.at(at.getTime() % 60_000 < toldWithinMs ? -3 : -2)
  return {
    name: depth.queue,
    depth,
    done: points.map(({ completed }) => completed),
    wrong: points.map(({ failed, dead, crashed }) => failed + dead + crashed),
    inPerMinute: told?.enqueued ?? 0,
    outPerMinute: told?.completed ?? 0,
    note: depth.paused
      ? 'paused'
      : depth.draining
        ? 'draining'
        : isUnserved(depth, depth.serving)
          ? 'has no worker'
          : '',
  }
}

function totalOf(rows: readonly ViewRow[]): ViewRow {
  const sum = (of: (row: ViewRow) => number) => rows.reduce((all, row) => all + of(row), 0)
  const byMinute = (of: (row: ViewRow) => readonly number[]) =>
    of(rows[0]!).map((_, i) => sum((row) => of(row)[i] ?? 0))
  return {
    name: 'total',
    depth: {
      ready: sum(({ depth }) => depth.ready),
      running: sum(({ depth }) => depth.running),
      dead: sum(({ depth }) => depth.dead),
      lagMs: Math.max(...rows.map(({ depth }) => depth.lagMs)),
    },
    done: byMinute(({ done }) => done),
    wrong: byMinute(({ wrong }) => wrong),
    inPerMinute: sum(({ inPerMinute }) => inPerMinute),
    outPerMinute: sum(({ outPerMinute }) => outPerMinute),
    note: '',
  }
}

/** If there is not room for all, the queues with the most to do, in their order. */
function byInterest(rows: readonly ViewRow[]): ViewRow[] {
  const pace = ({ depth, inPerMinute, outPerMinute }: ViewRow) =>
    depth.ready + depth.running + inPerMinute + outPerMinute
  return rows.toSorted((a, b) => b.depth.lagMs - a.depth.lagMs || pace(b) - pace(a))
}

function noteOf(rows: readonly ViewRow[]): string {
  const noted = rows.filter(({ note }) => note !== '')
  return noted.map(({ name, note }) => ` · ${name} ${note}`).join('')
}

function sparkOf({ done, wrong }: ViewRow, width: number, colors: Colors): string {
  if (done.length === 0) return ' '.repeat(width)
  const failures = inColumns(wrong, width)
  const text = sparkline(inColumns(done, width).map((n, i) => n + failures[i]!))
  return text
    .map((bar, i) => (bar === '·' ? colors.dim(bar) : failures[i]! > 0 ? colors.red(bar) : colors.green(bar)))
    .join('')
}

function fitted(text: string, width: number): string {
  const shown = shortened(text, width)
  return shown + ' '.repeat(width - widthOf(shown))
}

/** `12345`, `123k`, `12M`: in at most five columns. */
function short(n: number): string {
  if (n < 10_000) return count(n)
  if (n < 1_000_000) return `${Math.floor(n / 1_000)}k`
  return n < 1e9 ? `${Math.floor(n / 1e6)}M` : `${Math.floor(n / 1e9)}G`
}

/** Rounded to the second if it is at least some seconds. */
function roughly(ms: number): number {
  return ms < 1_000 ? ms : ms < 600_000 ? Math.round(ms / 1_000) * 1_000 : Math.round(ms / 60_000) * 60_000
}

/** The bars of a sparkline. */
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
