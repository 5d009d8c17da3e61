/**
 * The throttles page: every throttle, the queues that share it, how full its windows are, and when the next job may
 * start.
 */

import type { ListPage, QueueHolds, Throttle } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { PageHead, Section } from '../../frame/page-head.js'
import { SearchField } from '../../parts/search-field.js'
import { TableNotice } from '../../parts/table-notice.js'
import { query } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { HoldTable } from '../queue/hold-table.js'
import { ThrottlePanel } from './throttle-panel.js'

/** A queue that is held, or has held or paused groups. */
type HeldQueue = QueueHolds & { readonly queue: string }

/** Windows fill and empty all the time. */
const everyMs = 1_000

const fits = ({ scope, queues }: Throttle, text: string) =>
  [scope, ...queues].some((name) => name.toLowerCase().includes(text.toLowerCase()))

export function ThrottlesPage() {
  const list = useResource((signal) => get<ListPage<Throttle>>('throttles', { signal }), [], { everyMs })
  const throttles = list.data.value?.items
  const held = useResource((signal) => get<ListPage<HeldQueue>>('holds', { signal }), [], { everyMs })
  const text = query.value.get('q') ?? ''
  const shown = throttles?.filter((throttle) => fits(throttle, text))
  return (
    <>
      <PageHead title="Throttles" />
      <div class="mb-4">
        <SearchField label="Filter throttles" placeholder="Scope or queue  /" />
      </div>
      {list.error.value && (
        <div class="panel mb-4">
          <TableNotice error={list.error.value} onRetry={() => void list.refresh()} />
        </div>
      )}
      <div class="grid items-start gap-4 xl:grid-cols-2" aria-busy={throttles === undefined}>
        {throttles === undefined && list.error.value === undefined && <div class="waiting h-44" />}
        {shown?.map((throttle) => (
          <ThrottlePanel key={throttle.scope} throttle={throttle} onChanged={() => void list.refresh()} />
        ))}
      </div>
      {held.data.value?.items
        .filter(({ queue }) => queue.toLowerCase().includes(text.toLowerCase()))
        .map((one) => (
          <Section key={one.queue} title={`Held in ${one.queue}`}>
            <HoldTable queue={one.queue} holds={one} refresh={() => void held.refresh()} />
          </Section>
        ))}
      {shown?.length === 0 && (
        <div class="panel">
          <TableNotice>{text === '' ? <NoThrottles /> : <p>No throttle fits the filter.</p>}</TableNotice>
        </div>
      )}
    </>
  )
}

function NoThrottles() {
  return (
    <>
      <p class="font-medium text-ink">No queue has a throttle.</p>
      <p>
        A throttle bounds how many jobs start in any window of time:{' '}
        <code class="font-mono">{"throttle: { limit: 10, window: '1m' }"}</code>
      </p>
    </>
  )
}
