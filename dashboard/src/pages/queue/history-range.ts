/** The history range: how far back the charts of a queue reach, in which steps, and how few points show it. Pure. */

import type { HistoryPoint } from '../../api/answers.js'

export interface HistoryRange {
  readonly key: string
  readonly text: string
  readonly step: 'minute' | 'hour'
  readonly lengthMs: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const stepMs = { minute: 60_000, hour: hourMs } as const

export const historyRanges: readonly HistoryRange[] = [
  { key: '1h', text: '1 hour', step: 'minute', lengthMs: hourMs },
  { key: '24h', text: '24 hours', step: 'minute', lengthMs: dayMs },
  { key: '7d', text: '7 days', step: 'minute', lengthMs: 7 * dayMs - hourMs },
  { key: '1y', text: '1 year', step: 'hour', lengthMs: 365 * dayMs },
]

/** Of the address; by default the first. */
export function rangeOf(key: string | null): HistoryRange {
  return historyRanges.find((range) => range.key === key) ?? historyRanges[0]!
}

/**
 * From which instant on points are asked for: all of the range, or only those that are not known or were not over when they
 * were read. Processes tell of a minute when it is over, and the last may be late with it.
 */
export function askedFrom({ lengthMs, step }: HistoryRange, known: readonly HistoryPoint[], now: number): number {
  const last = known.at(-1)
  const all = now - lengthMs
  return last === undefined ? all : Math.max(all, Date.parse(last.at) - 2 * stepMs[step])
}

/** What was known, with what was read since in its place; what has left the range is left out. */
export function mergedPoints(
  { lengthMs }: HistoryRange,
  known: readonly HistoryPoint[],
  read: readonly HistoryPoint[],
  now: number,
): readonly HistoryPoint[] {
  const since = read[0]?.at
  const before = since === undefined ? known : known.filter(({ at }) => at < since)
  const oldest = new Date(now - lengthMs).toISOString()
  return [...before, ...read].filter(({ at }) => at >= oldest)
}

/** Some points as one. */
export interface HistoryBin {
  /** When the first of them begins, in ms since 1970. */
  readonly at: number
  readonly enqueued: number
  readonly completed: number
  readonly failed: number
  readonly crashed: number
  /** Of the attempts that completed or failed, on average; undefined where there was none. */
  readonly meanRunMs: number | undefined
  /** The largest of them; undefined where nobody looked. */
  readonly lagMs: number | undefined
  readonly waiting: number | undefined
  readonly running: number | undefined
}

/** How long bins may be, in steps of the range. */
const binSteps = { minute: [1, 2, 5, 10, 15, 30, 60, 120], hour: [1, 2, 3, 6, 12, 24, 48] } as const

/** At most about `most` bins. They begin at whole minutes or hours, so that they stay the same while time goes on. */
export function binned(points: readonly HistoryPoint[], { step, lengthMs }: HistoryRange, most: number): HistoryBin[] {
  const steps = binSteps[step]
  const count = steps.find((n) => lengthMs / stepMs[step] / n <= most) ?? steps.at(-1)!
  const size = count * stepMs[step]
  const groups = new Map<number, HistoryPoint[]>()
  for (const point of points) {
    const at = Math.floor(Date.parse(point.at) / size) * size
    const group = groups.get(at)
    if (group === undefined) groups.set(at, [point])
    else group.push(point)
  }
  return [...groups].map(([at, group]) => binOf(at, group))
}

type Gauge = 'lagMs' | 'waiting' | 'running'

function binOf(at: number, points: readonly HistoryPoint[]): HistoryBin {
  const sum = (of: (point: HistoryPoint) => number) => points.reduce((total, point) => total + of(point), 0)
  const largest = (gauge: Gauge) => {
    const known = points.flatMap(({ gauges }) => (gauges === undefined ? [] : [gauges[gauge]]))
    return known.length === 0 ? undefined : Math.max(...known)
  }
  const ended = sum(({ completed, failed }) => completed + failed)
  return {
    at,
    enqueued: sum(({ enqueued }) => enqueued),
    completed: sum(({ completed }) => completed),
    failed: sum(({ failed }) => failed),
    crashed: sum(({ crashed }) => crashed),
    meanRunMs: ended === 0 ? undefined : sum(({ runMs }) => runMs) / ended,
    lagMs: largest('lagMs'),
    waiting: largest('waiting'),
    running: largest('running'),
  }
}
