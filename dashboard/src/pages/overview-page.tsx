/** The overview page: all queues at a glance, live. */

import { useMemo } from 'preact/hooks'
import type { Overview, Spark } from '../api/answers.js'
import { session } from '../api/api-client.js'
import { DataTable } from '../parts/data-table.js'
import { Select } from '../parts/form-field.js'
import { latePart } from '../parts/late-part.js'
import { CopyButton } from '../parts/name-text.js'
import { PageHead } from '../parts/page-head.js'
import { Stat, Stats } from '../parts/stat-tile.js'
import { overview, useLiveOverview } from '../state/live-overview.js'
import { query, setQuery } from '../state/page-address.js'
import { countOf, countWords } from '../words/count-words.js'
import { durationWords } from '../words/duration-words.js'
import { queueColumns } from './queue-columns.js'
import { filterChoices, filteredQueues, perMinute } from './queue-filter.js'

/** The first view does not wait for it. */
const OverviewChart = latePart(async () => (await import('./overview-chart.js')).OverviewChart)

export function OverviewPage() {
  useLiveOverview()
  const data = overview.data.value
  const [text, kind] = [query.value.get('q') ?? '', query.value.get('show') ?? '']
  const shown = useMemo(() => data && filteredQueues(data.queues, text, kind), [data, text, kind])
  // Not drawn again for each letter of the filter.
  const tiles = useMemo(() => <OverviewTiles overview={data} />, [data])
  const isUnused = data?.queues.every(isUntouched) ?? false
  return (
    <>
      <PageHead title="Overview" />
      {tiles}
      {session.value?.features.history && !isUnused && (
        <div class="panel mt-2.5 h-59 overflow-clip p-3.5 has-[details[open]]:h-auto sm:h-54">
          {data && <OverviewChart overview={data} />}
        </div>
      )}
      <div class="mt-5 mb-2 flex flex-wrap items-center gap-2">
        <input
          type="search"
          class="field max-w-64"
          placeholder="Filter by name"
          aria-label="Filter queues by name"
          value={text}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        <Select
          label="Which queues"
          value={kind}
          choices={filterChoices}
          onChange={(value) => setQuery({ show: value })}
        />
        <output class="ms-auto text-sm text-muted">
          {data &&
            shown &&
            (shown.length === data.queues.length
              ? countOf(shown.length, 'queue')
              : `${shown.length} of ${countOf(data.queues.length, 'queue')}`)}
        </output>
      </div>
      <DataTable
        label="Queues"
        columns={queueColumns}
        rows={shown}
        keyOf={({ name }) => name}
        error={overview.error.value}
        onRetry={() => void overview.refresh()}
        empty={data?.queues.length === 0 ? <FirstSteps title="There is no queue yet." /> : <NoMatch />}
      />
      {isUnused && data?.queues.length !== 0 && (
        <div class="panel mt-4 grid justify-items-center px-4 text-muted">
          <FirstSteps title="No job has come yet." />
        </div>
      )}
    </>
  )
}

function NoMatch() {
  return (
    <>
      <p>No queue matches the filter.</p>
      <button type="button" class="link" onClick={() => setQuery({ q: undefined, show: undefined })}>
        Show all
      </button>
    </>
  )
}

function isUntouched(counts: {
  readonly ready: number
  readonly scheduled: number
  readonly waiting: number
  readonly running: number
  readonly dead: number
  readonly processed: number
  readonly failed: number
}): boolean {
  const { ready, scheduled, waiting, running, dead, processed, failed } = counts
  return ready + scheduled + waiting + running + dead + processed + failed === 0
}

/** The sums over all queues, and the workers. */
function OverviewTiles({ overview }: { readonly overview: Overview | undefined }) {
  const totals = overview?.totals
  const workers = overview?.workers
  const rate = (key: keyof Spark) =>
    overview && countWords(overview.queues.reduce((sum, { spark }) => sum + (perMinute(spark[key]) ?? 0), 0))
  const hasHistory = session.value?.features.history
  return (
    <Stats>
      <Stat
        label="Ready"
        value={totals && countWords(totals.ready)}
        note={totals && `${countWords(totals.retries)} after a failure`}
      />
      <Stat label="Scheduled" value={totals && countWords(totals.scheduled)} note="due later" />
      {totals !== undefined && totals.waiting > 0 && (
        <Stat label="Waiting" value={countWords(totals.waiting)} note="for jobs or signals" />
      )}
      <Stat
        label="Running"
        value={totals && countWords(totals.running)}
        note={workers ? `of ${countOf(workers.slots, 'slot')}` : ''}
      />
      <Stat
        label="Dead"
        value={totals && countWords(totals.dead)}
        note="in the morgue"
        href="morgue"
        tone={totals && totals.dead > 0 ? 'bad' : 'ink'}
      />
      <Stat
        label="Longest lag"
        value={totals && durationWords(totals.lagMs)}
        note="of the oldest due job"
        tone={totals && totals.lagMs >= 60_000 ? 'warn' : 'ink'}
      />
      {hasHistory && <Stat label="In" value={rate('enqueued')} note="in the last minute" />}
      {hasHistory && <Stat label="Done" value={rate('done')} note={overview ? `${rate('failed')} failed` : ''} />}
      {workers !== null && (
        <Stat
          label="Workers"
          value={workers && countWords(workers.count)}
          note={workers && workersNote(workers)}
          href="workers"
          tone={workers?.count === 0 ? 'warn' : 'ink'}
        />
      )}
    </Stats>
  )
}

function workersNote({ count, running, silent }: NonNullable<Overview['workers']>): string {
  if (silent > 0) return `${silent} silent`
  return count === 0 ? 'none runs' : `${running} in hand`
}

const lines = [
  ['Enqueue a job', `npx millrace enqueue send-email '{"to":"ada@example.org"}'`],
  ['Run what waits', 'npx millrace work'],
] as const

/** How to enqueue and run the first job, shown while there is none. */
function FirstSteps({ title }: { readonly title: string }) {
  return (
    <div class="grid w-full max-w-2xl gap-3 py-4 text-start">
      <p class="text-center text-ink">{title}</p>
      {lines.map(([text, command]) => (
        <div key={text} class="grid gap-1">
          <span class="text-xs">{text}</span>
          <div class="flex items-center gap-2 rounded-md bg-sunk py-1.5 ps-3 pe-1.5">
            <code class="min-w-0 flex-1 overflow-x-auto font-mono text-sm whitespace-nowrap text-ink">{command}</code>
            <CopyButton text={command} what={command} />
          </div>
        </div>
      ))}
    </div>
  )
}
