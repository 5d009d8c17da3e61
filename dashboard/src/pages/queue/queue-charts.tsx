/** The queue charts: counts of a queue's jobs over the chosen time, and the gauges of the queue. */

import { useMemo } from 'preact/hooks'
import type { HistoryPoint, QueueDetail, QueueHistory } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import type { Series } from '../../parts/chart-scale.js'
import { niceDurations } from '../../parts/chart-scale.js'
import { Section } from '../../parts/page-head.js'
import { SeriesChart } from '../../parts/series-chart.js'
import { TableNotice } from '../../parts/table-notice.js'
import { query, setQuery } from '../../state/page-address.js'
import { type Resource, useResource } from '../../state/resource.js'
import { countWords } from '../../words/count-words.js'
import { durationWords, shortDuration } from '../../words/duration-words.js'
import { clockWords, dayWords } from '../../words/moment-words.js'
import {
  askedFrom,
  binned,
  type HistoryBin,
  type HistoryRange,
  historyRanges,
  mergedPoints,
  rangeOf,
  withPresent,
} from './history-range.js'

const everyMs = 60_000
/** More points than pixels show nothing. */
const mostBins = 240

interface KnownHistory {
  readonly range: HistoryRange
  readonly points: readonly HistoryPoint[]
}

/** Only the first request for a range reads all of it. */
function useHistory(queue: string, range: HistoryRange) {
  const known: Resource<KnownHistory> = useResource<KnownHistory>(
    async (signal) => {
      const last = known.data.value
      const before = last?.range === range ? last.points : []
      const now = Date.now()
      const from = new Date(askedFrom(range, before, now)).toISOString()
      const { points } = await get<QueueHistory>(at`queues/${queue}/history`, {
        query: { step: range.step, from },
        signal,
      })
      return { range, points: mergedPoints(range, before, points, now) }
    },
    [range],
    { everyMs },
  )
  return known
}

interface QueueChartsProps {
  readonly name: string
  /** The queue now: the last point of the gauges, if nobody has measured them yet. */
  readonly queue: QueueDetail | undefined
}

export function QueueCharts({ name, queue }: QueueChartsProps) {
  const range = rangeOf(query.value.get('range'))
  const history = useHistory(name, range)
  const data = history.data.value
  const measured = useMemo(() => (data === undefined ? [] : binned(data.points, data.range, mostBins)), [data])
  const bins = useMemo(() => withPresent(measured, queue), [measured, queue])
  const error = history.error.value
  return (
    <Section title="History" actions={<RangeSwitch range={range} />}>
      {error !== undefined && data === undefined ? (
        <div class="panel">
          <TableNotice error={error} onRetry={() => void history.refresh()} />
        </div>
      ) : (
        <Charts bins={bins} range={data?.range ?? range} />
      )}
    </Section>
  )
}

function RangeSwitch({ range }: { readonly range: HistoryRange }) {
  return (
    <fieldset class="flex rounded-md border border-edge" aria-label="How far back">
      {historyRanges.map(({ key, text }) => (
        <button
          key={key}
          type="button"
          class="h-7 px-2.5 text-sm not-first:border-s not-first:border-line aria-pressed:bg-wash aria-pressed:font-medium aria-pressed:text-accent"
          aria-pressed={key === range.key}
          onClick={() => setQuery({ range: key })}
        >
          {text}
        </button>
      ))}
    </fieldset>
  )
}

interface ChartsProps {
  readonly bins: readonly HistoryBin[]
  readonly range: HistoryRange
}

function Charts({ bins, range }: ChartsProps) {
  const shown = useMemo(() => {
    const times = bins.map((bin) => bin.at)
    const one = (
      name: string,
      stroke: Series['stroke'],
      of: (bin: HistoryBin) => number | undefined,
      isDashed = false,
    ): Series => ({
      name,
      stroke,
      values: bins.map(of),
      isDashed,
    })
    return {
      times,
      ended: [
        one('done', 'accent', ({ completed }) => completed),
        one('failed', 'bad', ({ failed }) => failed),
        one('crashed', 'warn', ({ crashed }) => crashed),
      ],
      entered: [one('enqueued', 'accent', ({ enqueued }) => enqueued)],
      standing: [
        one('ready', 'accent', ({ waiting }) => waiting),
        one('running', 'good', ({ running }) => running, true),
      ],
      durations: [
        one('lag', 'warn', ({ lagMs }) => lagMs),
        one('mean run time', 'accent', ({ meanRunMs }) => meanRunMs, true),
      ],
    }
  }, [bins])
  const moment = range.lengthMs > 86_400_000 ? (ms: number) => `${dayWords(ms)} ${clockWords(ms)}` : clockWords
  const counts = { times: shown.times, words: countWords, momentWords: moment }
  const inTime = { times: shown.times, words: shortDuration, momentWords: moment, ticks: niceDurations }
  const each = eachWords(bins)
  return (
    <div class="grid gap-3 lg:grid-cols-2">
      <div class="panel p-3.5">
        <SeriesChart label={`Runs ended ${each}`} kind="bars" series={shown.ended} {...counts} />
      </div>
      <div class="panel p-3.5">
        <SeriesChart label={`Jobs enqueued ${each}`} kind="bars" series={shown.entered} {...counts} />
      </div>
      <div class="panel p-3.5">
        <SeriesChart label="Ready and running" kind="lines" series={shown.standing} {...counts} />
      </div>
      <div class="panel p-3.5">
        <SeriesChart label="Lag and run time" kind="lines" series={shown.durations} {...inTime} />
      </div>
    </div>
  )
}

/** The length of a bin, in words. */
function eachWords([first, second]: readonly HistoryBin[]): string {
  if (first === undefined || second === undefined) return ''
  const ms = second.at - first.at
  return ms === 60_000 ? 'per minute' : ms === 3_600_000 ? 'per hour' : `per ${durationWords(ms)}`
}
