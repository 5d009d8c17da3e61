/** The overview page: all queues at a glance, live. */

import { useMemo } from 'preact/hooks'
import { PageHead } from '../../frame/page-head.js'
import { DataTable } from '../../parts/data-table.js'
import { Select } from '../../parts/form-field.js'
import { overview, useLiveOverview } from '../../state/live-overview.js'
import { query, setQuery } from '../../state/page-address.js'
import { countOf } from '../../words/count-words.js'
import { FirstSteps } from './first-steps.js'
import { OverviewTiles } from './overview-tiles.js'
import { queueColumns } from './queue-columns.js'
import { filterChoices, filteredQueues } from './queue-filter.js'

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
      <p>No queue is like that.</p>
      <button type="button" class="link" onClick={() => setQuery({ q: undefined, show: undefined })}>
        Show all
      </button>
    </>
  )
}

function isUntouched(counts: {
  readonly ready: number
  readonly scheduled: number
  readonly running: number
  readonly dead: number
  readonly processed: number
  readonly failed: number
}): boolean {
  const { ready, scheduled, running, dead, processed, failed } = counts
  return ready + scheduled + running + dead + processed + failed === 0
}
