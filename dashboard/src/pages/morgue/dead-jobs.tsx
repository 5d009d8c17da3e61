/** The dead jobs of a queue: all, page by page, or those of one error. Chosen ones can be revived or deleted. */

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { JobRow, ListPage } from '../../api/answers.js'
import { get, mayChange } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { at, jobAddress } from '../../api/api-path.js'
import { DataTable } from '../../parts/data-table.js'
import { PageTurner, SelectionBar } from '../../parts/page-turner.js'
import { Button } from '../../parts/press-button.js'
import { usePages } from '../../state/cursor-pages.js'
import { query, setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { useSelection } from '../../state/row-selection.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { columnsFor, hasFields } from '../jobs/job-columns.js'
import { filterInAddress, filterQuery, isFiltered, ListFilters } from '../jobs/list-filters.js'
import type { DeadGroup } from './group-table.js'
import { askForDead, askForMatchingDead } from './morgue-acts.js'

const perPage = 25

interface GroupJobsProps {
  readonly queue: string
  readonly group: DeadGroup
  /** Called after jobs were revived or deleted. */
  readonly done: () => unknown
}

/** Those of one error, some at a time; each is looked up by its id. */
export function GroupJobs({ queue, group: { ids, count }, done }: GroupJobsProps) {
  const from = Math.max(0, Math.floor(Number(query.value.get('from')) || 0))
  const asked = ids.slice(from, from + perPage)
  const jobs = useResource<readonly JobRow[]>(
    async (signal) => {
      const found = await Promise.all(asked.map((id) => deadJob(queue, id, signal)))
      return found.filter((job) => job !== undefined)
    },
    [queue, asked.join('\0')],
  )
  const turn = (to: number) => setQuery({ from: to === 0 ? undefined : String(to) })
  useEffect(() => {
    // The rest of a group may have gone since this page was opened.
    if (from > 0 && from >= ids.length) turn(0)
  }, [from, ids.length])
  return (
    <>
      <DeadJobTable
        queue={queue}
        rows={jobs.data.value}
        error={jobs.error.value}
        onRetry={jobs.refresh}
        done={done}
        pageKey={String(from)}
        empty={<p>None of these is in the morgue any more.</p>}
      />
      <nav class="mt-3 flex min-h-8 flex-wrap items-center gap-2" aria-label="Pages">
        <Button isDisabled={from === 0} onPress={() => turn(Math.max(0, from - perPage))}>
          Previous
        </Button>
        <Button isDisabled={from + perPage >= ids.length} onPress={() => turn(from + perPage)}>
          Next
        </Button>
        <span class="ms-auto text-sm text-muted">
          {exactCount(Math.min(from + 1, ids.length))}–{exactCount(Math.min(from + perPage, ids.length))} of{' '}
          {exactCount(count)}
        </span>
      </nav>
    </>
  )
}

/** Undefined if it was revived or deleted meanwhile. */
async function deadJob(queue: string, id: string, signal: AbortSignal): Promise<JobRow | undefined> {
  try {
    return await get<JobRow>(jobAddress({ queue, id, part: 'morgue' }), { signal })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'job-unknown') return undefined
    throw error
  }
}

const orders = [
  ['time', 'latest first'],
  ['id', 'by id'],
] as const

export function DeadList({ queue, done }: { readonly queue: string; readonly done: () => unknown }) {
  const filter = filterInAddress()
  const by = query.value.get('by') ?? undefined
  const pages = usePages<JobRow>(
    (cursor, signal) =>
      get<ListPage<JobRow>>(at`queues/${queue}/morgue`, { query: { ...filterQuery(filter), by, cursor }, signal }),
    [JSON.stringify(filter), by],
  )
  const { page } = pages
  const rows = page.data.value?.items
  const asking = { queue, done: () => Promise.all([page.refresh(), done()]) }
  return (
    <>
      <div class="flex flex-wrap items-center gap-2">
        <ListFilters filter={filter} by={by ?? 'time'} choices={orders} />
        {mayChange.value && isFiltered(filter) && (
          <>
            <Button onPress={() => askForMatchingDead('revive', filter, asking)}>Revive all that match …</Button>
            <Button kind="danger" onPress={() => askForMatchingDead('delete', filter, asking)}>
              Delete all that match …
            </Button>
          </>
        )}
      </div>
      <DeadJobTable
        key={pages.key}
        queue={queue}
        rows={rows}
        error={page.error.value}
        onRetry={page.refresh}
        done={asking.done}
        pageKey={query.value.toString()}
        empty={
          isFiltered(filter) ? (
            <p>No dead job of this page matches the filter.{pages.hasNext && ' The next pages may have some.'}</p>
          ) : (
            <p>This morgue is empty.</p>
          )
        }
      />
      <PageTurner pages={pages}>{rows && `${countOf(rows.length, 'job')} on this page`}</PageTurner>
    </>
  )
}

interface DeadProps {
  readonly queue: string
  readonly rows: readonly JobRow[] | undefined
  readonly error: Error | undefined
  readonly onRetry: () => void
  readonly done: () => unknown
  /** Another page has other rows: none of them is chosen. */
  readonly pageKey: string
  readonly empty: ComponentChildren
}

function DeadJobTable({ queue, rows, error, onRetry, done, pageKey, empty }: DeadProps) {
  const selection = useSelection()
  useEffect(() => selection.set([]), [pageKey])
  const chosen = rows?.filter(({ id }) => selection.keys.has(id)).map(({ id }) => id) ?? []
  const asking = {
    queue,
    done: () => {
      selection.set([])
      return done()
    },
  }
  const mayAct = mayChange.value
  return (
    <>
      {mayAct && (
        <SelectionBar selection={selection}>
          <Button kind="main" onPress={() => askForDead('revive', chosen, asking)}>
            Revive
          </Button>
          <Button kind="danger" onPress={() => askForDead('delete', chosen, asking)}>
            Delete
          </Button>
        </SelectionBar>
      )}
      <DataTable
        label={`Dead jobs of ${queue}`}
        columns={columnsFor('dead', { isOrdered: false, hasFields: hasFields(rows) })}
        rows={rows}
        keyOf={idOf}
        error={error}
        onRetry={onRetry}
        {...(mayAct && { selection })}
        empty={empty}
      />
    </>
  )
}

function idOf({ id }: JobRow): string {
  return id
}
