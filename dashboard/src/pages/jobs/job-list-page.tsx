/**
 * The job list page: the jobs of a queue, page by page, by state, filter and order, with actions on chosen jobs, on all that
 * match, or on all.
 */

import { useEffect } from 'preact/hooks'
import type { JobRow, JobState, ListPage, QueueCounts, QueueDetail } from '../../api/answers.js'
import { get, mayChange } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { DataTable } from '../../parts/data-table.js'
import { CountText } from '../../parts/moment-text.js'
import { PageHead } from '../../parts/page-head.js'
import { PageTurner, SelectionBar } from '../../parts/page-turner.js'
import { Menu } from '../../parts/popover-menu.js'
import { Button } from '../../parts/press-button.js'
import { QueueBadges } from '../../parts/state-badge.js'
import { clearFilters, filterList, usePages } from '../../state/cursor-pages.js'
import { query } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { useSelection } from '../../state/row-selection.js'
import { countOf } from '../../words/count-words.js'
import { QueueTabs } from '../queue-tabs.js'
import { columnsFor, hasFields, rowKey } from './job-columns.js'
import { allItems, askForChosen, jobVerbs, matchItems, verbText } from './job-verbs.js'
import { filterInAddress, filterQuery, isFiltered, ListFilters } from './list-filters.js'

const everyMs = 5_000

export function JobListPage({ queue }: { readonly queue: string }) {
  const asked = query.value.get('state') ?? 'all'
  const listed: ListedState = listedStates.find((state) => state === asked) ?? 'all'
  const filter = filterInAddress()
  const filterKey = JSON.stringify(filter)
  const by = query.value.get('by') ?? undefined
  const counts = useResource<QueueDetail>((signal) => get(at`queues/${queue}`, { signal }), [], { everyMs })
  const pages = usePages<JobRow>(
    (cursor, signal) =>
      get<ListPage<JobRow>>(at`queues/${queue}/jobs`, {
        query: { ...(listed !== 'all' && { state: listed }), ...filterQuery(filter), by, cursor },
        signal,
      }),
    [listed, filterKey, by],
  )
  const selection = useSelection()
  const { page } = pages
  const rows = page.data.value?.items
  const known = counts.data.value
  const mayAct = mayChange.value
  const done = () => {
    selection.set([])
    return Promise.all([page.refresh(), counts.refresh()])
  }
  // Another list has other rows.
  useEffect(() => selection.set([]), [listed, filterKey, by, query.value.get('cursor')])
  useEffect(() => {
    // While rows are being chosen the list stays as it is.
    const timer = setInterval(() => document.hidden || selection.keys.size > 0 || void page.refresh(), everyMs)
    return () => clearInterval(timer)
  }, [])
  const chosen = rows?.filter((job) => selection.keys.has(rowKey(job))) ?? []
  // In an ordered queue a live job may have the id of a dead one, and would be acted on in its place.
  const ids = chosen.filter(({ state }) => state !== 'dead').map(({ id }) => id)
  const asking = { queue, done }
  const all = mayAct && known !== undefined ? allItems(known, asking) : []
  // The order of failed ones leaves out the others, and no action does.
  const mayMatch = mayAct && by !== 'retry' && (isFiltered(filter) || listed !== 'all')
  const matching = mayMatch ? matchItems(filter, listed, asking) : []
  return (
    <>
      <PageHead
        title={`Jobs of ${queue}`}
        crumbs={[
          { text: 'Overview', href: './' },
          { text: queue, href: at`queues/${queue}` },
        ]}
        badges={known && <QueueBadges queue={known} />}
        actions={all.length > 0 && <Menu label="Do something to all jobs" text="All jobs …" items={all} />}
      />
      <QueueTabs queue={queue} open="jobs" counts={known} />
      <div class="mb-3 flex flex-wrap items-center justify-between gap-3">
        <StateTabs listed={listed} counts={known} />
        <div class="flex flex-wrap items-center gap-2">
          <ListFilters filter={filter} by={by ?? 'time'} />
          {matching.length > 0 && (
            <Menu label="Do something to all that match" text="All that match …" items={matching} />
          )}
        </div>
      </div>
      {mayAct && (
        <SelectionBar selection={selection}>
          {jobVerbs.map((verb) => (
            <Button
              key={verb}
              kind={verb === 'delete' ? 'danger' : 'plain'}
              isDisabled={ids.length === 0}
              onPress={() => askForChosen(verb, ids, asking)}
            >
              {verbText(verb)}
            </Button>
          ))}
          {ids.length < chosen.length && (
            <a class="link text-sm" href={at`queues/${queue}/morgue`}>
              Dead ones are revived in the morgue
            </a>
          )}
        </SelectionBar>
      )}
      <DataTable
        key={pages.key}
        label={`Jobs of ${queue}`}
        columns={columnsFor(listed, { isOrdered: known?.kind === 'ordered', hasFields: hasFields(rows) })}
        rows={rows}
        keyOf={rowKey}
        error={page.error.value}
        onRetry={page.refresh}
        isLoading={page.loading.value && rows === undefined}
        {...(mayAct && { selection })}
        empty={
          <Empty listed={listed} isFiltered={isFiltered(filter)} hasNext={pages.hasNext} isFirst={pages.isFirst} />
        }
      />
      <PageTurner pages={pages}>{rows && `${countOf(rows.length, 'job')} on this page`}</PageTurner>
    </>
  )
}

interface EmptyProps {
  readonly listed: ListedState
  readonly isFiltered: boolean
  readonly hasNext: boolean
  readonly isFirst: boolean
}

function Empty({ listed, isFiltered, hasNext, isFirst }: EmptyProps) {
  if (isFiltered)
    return (
      <>
        <p>No job of this page matches the filter.{hasNext && ' The next pages may have some.'}</p>
        <Button onPress={clearFilters}>Show all jobs</Button>
      </>
    )
  if (!isFirst) return <p>This is the end of the list.</p>
  if (listed === 'cancelled')
    return <p>Lists leave out cancelled jobs. One that had begun is found by its id for a while.</p>
  if (listed === 'completed')
    return <p>None is kept. The retention of the queue says how many it keeps, and for how long.</p>
  return <p>{listed === 'all' ? 'This queue has no jobs.' : `No job is ${listed}.`}</p>
}

/** In the order of a job's life; the queue keeps no count of ended jobs. */
const listedStates = ['all', 'waiting', 'scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled'] as const

type ListedState = (typeof listedStates)[number]

interface TabsProps {
  readonly listed: ListedState
  readonly counts: QueueCounts | undefined
}

/** The states of jobs with their counts; the list shows one of them. */
function StateTabs({ listed, counts }: TabsProps) {
  return (
    <fieldset class="flex flex-wrap gap-1" aria-label="State">
      {listedStates.map((state) => (
        <button
          key={state}
          type="button"
          aria-pressed={state === listed}
          class="flex min-h-8 items-center gap-1.5 rounded-md px-2.5 text-muted hover:bg-sunk hover:text-ink aria-pressed:bg-wash aria-pressed:font-medium aria-pressed:text-accent"
          onClick={() => filterList({ state: state === 'all' ? undefined : state })}
        >
          {state}
          {counts !== undefined && isCounted(state) && (
            <span class="text-xs">
              <CountText count={counts[state]} />
            </span>
          )}
        </button>
      ))}
    </fieldset>
  )
}

function isCounted(state: JobState | 'all'): state is 'waiting' | 'scheduled' | 'ready' | 'running' | 'dead' {
  return state !== 'all' && state !== 'completed' && state !== 'cancelled'
}
