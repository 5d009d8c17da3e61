/** The schedules page: all schedules, with their next ticks and the outcome of the last one. */

import type { ListPage, ScheduleRow } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { DataTable } from '../../parts/data-table.js'
import { SearchField } from '../../parts/form-field.js'
import { PageHead } from '../../parts/page-head.js'
import { PageTurner } from '../../parts/page-turner.js'
import { usePages } from '../../state/cursor-pages.js'
import { query } from '../../state/page-address.js'
import { loadedAgain } from './schedule-acts.js'
import { scheduleColumns } from './schedule-columns.js'
import { ScheduleDialog } from './schedule-dialog.js'

const perPage = 100

const fits = ({ name, task, queue }: ScheduleRow, text: string) =>
  [name, task, queue].some((one) => one.toLowerCase().includes(text.toLowerCase()))

export function SchedulesPage() {
  const pages = usePages<ScheduleRow>(
    (cursor, signal) => get<ListPage<ScheduleRow>>('schedules', { query: { cursor, limit: perPage }, signal }),
    [loadedAgain.value],
  )
  const rows = pages.page.data.value?.items
  const text = query.value.get('q') ?? ''
  const name = query.value.get('schedule')
  return (
    <>
      <PageHead title="Schedules" />
      <div class="mb-4">
        <SearchField label="Filter schedules" placeholder="Name, task or queue  /" />
      </div>
      <DataTable
        key={pages.key}
        label="Schedules"
        columns={scheduleColumns}
        rows={rows?.filter((schedule) => fits(schedule, text))}
        keyOf={(schedule) => schedule.name}
        error={pages.page.error.value}
        onRetry={() => void pages.page.refresh()}
        empty={text === '' ? <NoSchedules /> : <p>No schedule of this page fits the filter.</p>}
      />
      {(!pages.isFirst || pages.hasNext) && <PageTurner pages={pages} />}
      {name !== null && <ScheduleDialog key={name} name={name} />}
    </>
  )
}

function NoSchedules() {
  return (
    <>
      <p class="font-medium text-ink">Nothing is enqueued by the clock.</p>
      <p>
        A schedule stands in the configuration:{' '}
        <code class="font-mono">{"schedules: { nightly: { cron: '0 3 * * *', task } }"}</code>
      </p>
    </>
  )
}
