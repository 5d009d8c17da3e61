/** The morgues page: the queues with dead jobs, each with its errors. */

import { useState } from 'preact/hooks'
import type { QueueRow } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { CountText } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { PageHead } from '../../parts/page-head.js'
import { TableNotice, WaitingRows } from '../../parts/table-notice.js'
import { overview, useLiveOverview } from '../../state/live-overview.js'
import { useResource } from '../../state/resource.js'
import { countOf } from '../../words/count-words.js'
import { safeText } from '../../words/safe-text.js'
import type { DeadGroups } from './group-table.js'
import { GroupTable } from './group-table.js'

/** This many are opened at first; the others on request. */
const openAtFirst = 3

export function MorguesPage() {
  useLiveOverview()
  const { data, error } = overview
  const queues = data.value?.queues.filter(({ dead }) => dead > 0).sort((a, b) => b.dead - a.dead)
  const all = data.value?.totals.dead
  return (
    <>
      <PageHead
        title="Morgue"
        badges={
          all !== undefined &&
          queues !== undefined && (
            <span class="text-muted">
              {countOf(all, 'dead job')} in {countOf(queues.length, 'queue')}
            </span>
          )
        }
      />
      {queues === undefined && error.value === undefined && <WaitingRows />}
      {queues === undefined && error.value !== undefined && (
        <TableNotice error={error.value} onRetry={overview.refresh} />
      )}
      {queues?.length === 0 && (
        <div class="panel">
          <TableNotice>
            <p>No queue has dead jobs.</p>
            <p>A job comes here when it has failed for the last time, or when somebody buries it.</p>
          </TableNotice>
        </div>
      )}
      <div class="grid grid-cols-[minmax(0,1fr)] gap-4">
        {queues?.map((queue, i) => (
          <QueueMorgue key={queue.name} queue={queue} isOpen={i < openAtFirst} />
        ))}
      </div>
    </>
  )
}

function QueueMorgue({ queue: { name, dead }, isOpen }: { readonly queue: QueueRow; readonly isOpen: boolean }) {
  const [isShown, setShown] = useState(isOpen)
  return (
    <div class="relative">
      <details open={isShown} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary class="mb-1.5">
          <span class="inline-flex flex-wrap items-baseline gap-x-3 ps-1">
            <span class="font-semibold">
              <Name text={name} />
            </span>
            <span class="text-sm text-muted">
              <CountText count={dead} /> dead
            </span>
          </span>
        </summary>
        {isShown && <QueueGroups name={name} dead={dead} />}
      </details>
      <a class="link absolute end-0 top-0 text-sm" href={at`queues/${name}/morgue`}>
        Open <span class="sr-only">the morgue of {safeText(name)}</span>
      </a>
    </div>
  )
}

function QueueGroups({ name, dead }: { readonly name: string; readonly dead: number }) {
  const groups = useResource<DeadGroups>((signal) => get(at`queues/${name}/morgue/errors`, { signal }), [dead])
  return <GroupTable queue={name} groups={groups} done={groups.refresh} />
}
