/** The history range: how far back the charts of a queue reach, in which steps, and how many points they draw. Pure. */

import type { HistoryPoint, QueueCounts } from '../../api/answers.js'

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

/** The range in the address; by default the first. */
export function rangeOf(key: string | null): HistoryRange {
  return historyRanges.find((range) => range.key === key) ?? historyRanges[0]!
}

/**
 * The instant from which points are requested: the whole range, or only points that are unknown or were not over when
 * they were read. Processes write a minute once it is over, and the last may be late.
 */
export function askedFrom({ lengthMs, step }: HistoryRange, known: readonly HistoryPoint[], now: number): number {
  const last = known.at(-1)
  const all = now - lengthMs
  return last === undefined ? all : Math.max(all, Date.parse(last.at) - 2 * stepMs[step])
}

/** The known points, replaced by newer readings of them; points that have left the range are left out. */
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

/** Several points as one. */
export interface HistoryBin {
  /** When its first point begins, in ms since 1970. */
  readonly at: number
  readonly enqueued: number
  readonly completed: number
  readonly failed: number
  readonly crashed: number
  /** The mean run time of the attempts that completed or failed; undefined if there were none. */
  readonly meanRunMs: number | undefined
  /** The largest of them; undefined if nobody measured. */
  readonly lagMs: number | undefined
  readonly waiting: number | undefined
  readonly running: number | undefined
}

/** The possible lengths of bins, in steps of the range. */
const binSteps = { minute: [1, 2, 5, 10, 15, 30, 60, 120], hour: [1, 2, 3, 6, 12, 24, 48] } as const

/** At most about `most` bins. They begin at whole minutes or hours, so that they stay the same as time goes on. */
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

/** The bins with the counts of the queue now in the last of them, if nobody has measured it yet. */
export function withPresent(
  bins: readonly HistoryBin[],
  now: Pick<QueueCounts, 'ready' | 'running' | 'lagMs'> | undefined,
): readonly HistoryBin[] {
  const last = bins.at(-1)
  if (now === undefined || last === undefined || last.waiting !== undefined) return bins
  return [...bins.slice(0, -1), { ...last, waiting: now.ready, running: now.running, lagMs: now.lagMs }]
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
