/** The queue columns: the columns of the overview's table of queues. */

import type { QueueRow } from '../api/answers.js'
import { at } from '../api/api-path.js'
import { linePoints, type Stroke, strokes } from '../parts/chart-scale.js'
import { byText, type Column } from '../parts/data-table.js'
import { Meter } from '../parts/fill-meter.js'
import { CountText } from '../parts/moment-text.js'
import { Name } from '../parts/name-text.js'
import { QueueBadges } from '../parts/state-badge.js'
import { countWords } from '../words/count-words.js'
import { durationWords, shortDuration } from '../words/duration-words.js'
import { perMinute } from './queue-filter.js'

/** A longer lag is coloured. */
const longLagMs = 60_000

const byName = byText<QueueRow>(({ name }) => name)

function by(value: (queue: QueueRow) => number) {
  return (a: QueueRow, b: QueueRow) => value(a) - value(b) || byName(a, b)
}

function rateColumn(key: keyof QueueRow['spark'], title: string, tone = ''): Column<QueueRow> {
  return {
    key,
    title,
    width: '4rem',
    priority: 3,
    isNumber: true,
    order: by(({ spark }) => perMinute(spark[key]) ?? 0),
    show: ({ spark }) => {
      const rate = perMinute(spark[key])
      return rate ? <span class={tone}>{countWords(rate)}</span> : <CountText count={0} />
    },
  }
}

export const queueColumns: readonly Column<QueueRow>[] = [
  {
    key: 'name',
    title: 'Queue',
    width: 'minmax(9.5rem, 2fr)',
    order: byName,
    show: (queue) => (
      <span class="flex flex-wrap items-center gap-x-2 gap-y-0.5">
        <a class="row-link" href={at`queues/${queue.name}`}>
          <Name text={queue.name} most={80} />
        </a>
        <QueueBadges queue={queue} />
      </span>
    ),
  },
  {
    key: 'lag',
    title: 'Lag',
    width: '4rem',
    isNumber: true,
    order: by(({ lagMs }) => lagMs),
    show: ({ lagMs }) => (
      <span
        class={lagMs === 0 ? 'text-muted' : lagMs >= longLagMs ? 'font-medium text-warn' : ''}
        title={durationWords(lagMs)}
      >
        {shortDuration(lagMs)}
      </span>
    ),
  },
  {
    key: 'ready',
    title: 'Ready',
    width: '4rem',
    isNumber: true,
    order: by(({ ready }) => ready),
    show: ({ ready }) => <CountText count={ready} />,
  },
  {
    key: 'scheduled',
    title: 'Scheduled',
    width: '4.75rem',
    priority: 3,
    isNumber: true,
    order: by(({ scheduled }) => scheduled),
    show: ({ scheduled }) => <CountText count={scheduled} />,
  },
  {
    key: 'running',
    title: 'Running',
    width: '4.5rem',
    isNumber: true,
    order: by(({ running }) => running),
    show: ({ running, maxRunning }) => (
      <>
        <CountText count={running} />
        {typeof maxRunning === 'number' && <span class="text-muted"> / {countWords(maxRunning)}</span>}
        {typeof maxRunning === 'object' && (
          <span class="text-muted" title={`At most ${maxRunning.perGroup} of each group`}>
            {' '}
            / {maxRunning.perGroup} gr
          </span>
        )}
      </>
    ),
  },
  {
    key: 'dead',
    title: 'Dead',
    width: '3.5rem',
    isNumber: true,
    order: by(({ dead }) => dead),
    show: ({ dead, name }) =>
      dead === 0 ? (
        <CountText count={0} />
      ) : (
        <a class="font-medium text-bad hover:underline" href={at`queues/${name}/morgue`}>
          {countWords(dead)}
        </a>
      ),
  },
  rateColumn('enqueued', 'In/min'),
  rateColumn('done', 'Done/min'),
  rateColumn('failed', 'Fail/min', 'text-bad'),
  {
    key: 'spark',
    title: 'Last hour',
    width: 'minmax(5rem, 1fr)',
    priority: 3,
    show: ({ spark, name }) => <QueueSpark name={name} spark={spark} />,
  },
  {
    key: 'limit',
    title: 'Throttle',
    width: 'minmax(5rem, 0.75fr)',
    priority: 3,
    order: by(({ limit }) => (limit === undefined ? -1 : limit.hits / limit.limit)),
    show: ({ limit }) =>
      limit && (
        <Meter
          label="Throttle"
          hits={limit.hits}
          limit={limit.limit}
          windowMs={limit.windowMs}
          nextMs={limit.nextMs}
          isSmall
        />
      ),
  },
]

/** Without the present minute, whose counts have not come yet. */
function QueueSpark({ name, spark }: { readonly name: string; readonly spark: QueueRow['spark'] }) {
  const [done, failed] = [spark.done.slice(0, -1), spark.failed.slice(0, -1)]
  const sum = (values: readonly number[]) => countWords(values.reduce((total, n) => total + n, 0))
  return (
    <Sparkline
      label={`${name} in the last hour: ${sum(done)} done, ${sum(failed)} failed`}
      series={[
        { stroke: 'bad', values: failed },
        { stroke: 'accent', values: done },
      ]}
    />
  )
}

interface SparkProps {
  /** The label for screen readers. */
  readonly label: string
  readonly series: readonly { readonly stroke: Stroke; readonly values: readonly number[] }[]
}

const width = 120
const height = 24

/** The last minutes of one or more counts, small enough for a row of a table. */
function Sparkline({ label, series }: SparkProps) {
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
