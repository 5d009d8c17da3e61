/** The overview chart: the jobs of all queues in each minute of the last hour, as they came and as they ended. */

import { useMemo } from 'preact/hooks'
import type { Overview } from '../api/answers.js'
import type { Series } from '../parts/chart-scale.js'
import { SeriesChart } from '../parts/series-chart.js'
import { countWords } from '../words/count-words.js'
import { clockWords } from '../words/moment-words.js'
import { summedSparks } from './queue-filter.js'

export function OverviewChart({ overview }: { readonly overview: Overview }) {
  const { times, series } = useMemo(() => {
    const { times, enqueued, done, failed } = summedSparks(overview)
    const series: readonly Series[] = [
      { name: 'in', stroke: 'muted', values: enqueued, isDashed: true },
      { name: 'done', stroke: 'accent', values: done },
      { name: 'failed', stroke: 'bad', values: failed },
    ]
    return { times, series }
  }, [overview])
  return (
    <SeriesChart
      label="Jobs of all queues per minute"
      kind="lines"
      times={times}
      series={series}
      words={countWords}
      momentWords={clockWords}
      height={120}
    />
  )
}
