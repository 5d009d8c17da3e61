/** The dead list: all dead jobs of a queue, page by page. */

import type { JobRow, ListPage } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { PageTurner } from '../../parts/page-turner.js'
import { usePages } from '../../state/cursor-pages.js'
import { query } from '../../state/page-address.js'
import { countOf } from '../../words/count-words.js'
import { ListFilters } from '../jobs/list-filters.js'
import { DeadJobTable } from './dead-job-table.js'

const orders = [
  ['time', 'latest first'],
  ['id', 'by id'],
] as const

export function DeadList({ queue, done }: { readonly queue: string; readonly done: () => unknown }) {
  const task = query.value.get('task') ?? undefined
  const by = query.value.get('by') ?? undefined
  const pages = usePages<JobRow>(
    (cursor, signal) => get<ListPage<JobRow>>(at`queues/${queue}/morgue`, { query: { task, by, cursor }, signal }),
    [task, by],
  )
  const { page } = pages
  const rows = page.data.value?.items
  return (
    <>
      <ListFilters task={task ?? ''} by={by ?? 'time'} choices={orders} />
      <DeadJobTable
        key={pages.key}
        queue={queue}
        rows={rows}
        error={page.error.value}
        onRetry={page.refresh}
        done={() => Promise.all([page.refresh(), done()])}
        pageKey={query.value.toString()}
        empty={
          task === undefined ? (
            <p>Nothing lies in this morgue.</p>
          ) : (
            <p>No dead job of this task is on this page.{pages.hasNext && ' The next pages may have some.'}</p>
          )
        }
      />
      <PageTurner pages={pages}>{rows && `${countOf(rows.length, 'job')} on this page`}</PageTurner>
    </>
  )
}
