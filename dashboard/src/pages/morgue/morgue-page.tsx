/** The morgue page of a queue: its dead jobs by error, those of one error, or all of them, with their actions. */

import type { QueueDetail } from '../../api/answers.js'
import { get, mayChange } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { PageHead } from '../../parts/page-head.js'
import { Button } from '../../parts/press-button.js'
import { TableNotice, WaitingRows } from '../../parts/table-notice.js'
import { query, setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { countOf } from '../../words/count-words.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { QueueTabs } from '../queue-tabs.js'
import { DeadList, GroupJobs } from './dead-jobs.js'
import { type DeadGroups, DeathBars, GroupTable, groupKey } from './group-table.js'
import { askForAllDead, askForDead } from './morgue-acts.js'

const everyMs = 10_000
const views = [
  ['errors', 'By error'],
  ['jobs', 'All dead jobs'],
] as const

export function MorguePage({ queue }: { readonly queue: string }) {
  const view = query.value.get('view') ?? 'errors'
  const counts = useResource<QueueDetail>((signal) => get(at`queues/${queue}`, { signal }), [], { everyMs })
  const groups = useResource<DeadGroups>((signal) => get(at`queues/${queue}/morgue/errors`, { signal }), [])
  const done = () => Promise.all([counts.refresh(), groups.refresh()])
  const dead = counts.data.value?.dead
  return (
    <>
      <PageHead
        title={`Morgue of ${queue}`}
        crumbs={[
          { text: 'Morgue', href: 'morgue' },
          { text: queue, href: at`queues/${queue}` },
        ]}
        badges={dead !== undefined && <span class="text-muted">{countOf(dead, 'dead job')}</span>}
        actions={
          mayChange.value &&
          dead !== undefined &&
          dead > 0 && (
            <>
              <Button onPress={() => askForAllDead('revive', dead, { queue, done })}>Revive all …</Button>
              <Button kind="danger" onPress={() => askForAllDead('delete', dead, { queue, done })}>
                Delete all …
              </Button>
            </>
          )
        }
      />
      <QueueTabs queue={queue} open="morgue" counts={counts.data.value} />
      <fieldset class="mb-3 flex flex-wrap gap-1" aria-label="What is listed">
        {views.map(([name, text]) => (
          <button
            key={name}
            type="button"
            aria-pressed={(view === 'jobs') === (name === 'jobs')}
            class="min-h-8 rounded-md px-2.5 text-muted hover:bg-sunk hover:text-ink aria-pressed:bg-wash aria-pressed:font-medium aria-pressed:text-accent"
            onClick={() =>
              setQuery({
                view: name === 'errors' ? undefined : name,
                kind: undefined,
                error: undefined,
                task: undefined,
                from: undefined,
                cursor: undefined,
              })
            }
          >
            {text}
          </button>
        ))}
      </fieldset>
      {view === 'jobs' && <DeadList queue={queue} done={done} />}
      {view === 'group' && <OpenGroup queue={queue} groups={groups} done={done} />}
      {view !== 'jobs' && view !== 'group' && <GroupTable queue={queue} groups={groups} done={done} />}
    </>
  )
}

interface OpenGroupProps {
  readonly queue: string
  readonly groups: ReturnType<typeof useResource<DeadGroups>>
  readonly done: () => unknown
}

/** The group in the address. */
function OpenGroup({ queue, groups, done }: OpenGroupProps) {
  const kind = query.value.get('kind') ?? ''
  const task = query.value.get('task') ?? ''
  const all = groups.data.value
  if (all === undefined)
    return groups.error.value === undefined ? (
      <WaitingRows />
    ) : (
      <TableNotice error={groups.error.value} onRetry={groups.refresh} />
    )
  const group = all.groups.find((one) => groupKey(one) === groupKey({ kind, task }))
  if (group === undefined)
    return (
      <TableNotice>
        <p>No job with this error is among the latest dead jobs any more.</p>
        <a class="link" href={at`queues/${queue}/morgue`}>
          All errors of this queue
        </a>
      </TableNotice>
    )
  const asking = { queue, of: 'of this error', done }
  return (
    <>
      <div class="panel mb-3 flex flex-wrap items-start justify-between gap-3 p-4">
        <div class="min-w-0">
          <p class="font-medium wrap-anywhere text-bad">
            {group.error === '' ? 'Without an error' : shortText(safeText(group.error), 300)}
          </p>
          <p class="text-sm text-muted">
            {countOf(group.count, 'job')} of <Name text={task} />, first seen <Moment at={group.firstAt} />, last seen{' '}
            <Moment at={group.lastAt} />
          </p>
          <div class="mt-2 w-60 max-w-full">
            <DeathBars hours={group.hours} />
            <div class="flex justify-between text-xs text-muted" aria-hidden="true">
              <span>24 h ago</span>
              <span>now</span>
            </div>
          </div>
        </div>
        {mayChange.value && (
          <div class="flex gap-2">
            <Button kind="main" onPress={() => askForDead('revive', group.ids, asking)}>
              Revive {group.count > group.ids.length ? `the first ${group.ids.length}` : 'these'} …
            </Button>
            <Button kind="danger" onPress={() => askForDead('delete', group.ids, asking)}>
              Delete …
            </Button>
          </div>
        )}
      </div>
      <GroupJobs queue={queue} group={group} done={done} />
    </>
  )
}
