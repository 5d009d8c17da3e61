/** The group table: the dead jobs of a queue by error and task, the largest group first. */

import { useMemo } from 'preact/hooks'
import type { Instant } from '../../api/answers.js'
import { mayChange } from '../../api/api-client.js'
import { at, queryText } from '../../api/api-path.js'
import { type Column, DataTable } from '../../parts/data-table.js'
import { CountText, Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Menu } from '../../parts/popover-menu.js'
import type { Resource } from '../../state/resource.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { askForDead } from './morgue-acts.js'

/** The dead jobs of a queue that share their task and the kind of their error. */
export interface DeadGroup {
  readonly kind: string
  /** The first line of the latest error. */
  readonly error: string
  readonly task: string
  readonly count: number
  /** The first 1,000 of them. */
  readonly ids: readonly string[]
  /** When the first and the last of them died. */
  readonly firstAt?: Instant
  readonly lastAt?: Instant
  /** How many died in each of the last 24 hours, the present one last. */
  readonly hours: readonly number[]
}

export interface DeadGroups {
  /** The number of latest dead jobs that were looked at. */
  readonly scanned: number
  /** There are others. */
  readonly more: boolean
  readonly groups: readonly DeadGroup[]
}

/** Its name among those of its queue. */
export function groupKey({ task, kind }: Pick<DeadGroup, 'task' | 'kind'>): string {
  return `${task}\0${kind}`
}

interface GroupProps {
  readonly queue: string
  readonly groups: Resource<DeadGroups>
  /** Called after jobs were revived or deleted. */
  readonly done: () => unknown
}

export function GroupTable({ queue, groups, done }: GroupProps) {
  const mayAct = mayChange.value
  const columns = useMemo(() => columnsOf(queue, mayAct, done), [queue, mayAct])
  const { data, error, loading } = groups
  return (
    <>
      <DataTable
        label={`Errors in the morgue of ${queue}`}
        columns={columns}
        rows={data.value?.groups}
        keyOf={groupKey}
        error={error.value}
        onRetry={groups.refresh}
        isLoading={loading.value && data.value === undefined}
        empty={<p>This morgue is empty. Jobs come here when they have failed for the last time.</p>}
      />
      {data.value?.more && (
        <p class="mt-2 text-sm text-muted">
          These groups are of the latest {exactCount(data.value.scanned)} dead jobs. There are others.
        </p>
      )}
    </>
  )
}

function columnsOf(queue: string, mayAct: boolean, done: () => unknown): readonly Column<DeadGroup>[] {
  const shown: Column<DeadGroup>[] = [
    {
      key: 'error',
      title: 'Error',
      width: 'minmax(9rem, 4fr)',
      show: ({ kind, error, task }) => (
        <a class="row-link" href={`${at`queues/${queue}/morgue`}${queryText({ kind, task, view: 'group' })}`}>
          <span class="line-clamp-2" title={safeText(error)}>
            {error === '' ? 'without an error' : shortText(safeText(error), 200)}
          </span>
        </a>
      ),
    },
    {
      key: 'task',
      title: 'Task',
      width: 'minmax(5rem, 1fr)',
      priority: 3,
      show: ({ task }) => <Name text={task} most={32} />,
    },
    {
      key: 'firstAt',
      title: 'First seen',
      width: '6rem',
      priority: 3,
      show: ({ firstAt }) => <Moment at={firstAt} />,
    },
    { key: 'lastAt', title: 'Last seen', width: '6rem', show: ({ lastAt }) => <Moment at={lastAt} /> },
    {
      key: 'hours',
      title: 'Last 24 hours',
      width: '9rem',
      priority: 3,
      show: ({ hours }) => <DeathBars hours={hours} />,
    },
    { key: 'count', title: 'Jobs', width: '3rem', isNumber: true, show: ({ count }) => <CountText count={count} /> },
  ]
  if (!mayAct) return shown
  const acts: Column<DeadGroup> = {
    key: 'acts',
    title: 'Actions',
    width: '4rem',
    show: (group) => <GroupMenu queue={queue} group={group} done={done} />,
  }
  return [...shown, acts]
}

const barsHeight = 24

/** The deaths of each hour as a bar, the present hour at the right. */
export function DeathBars({ hours }: { readonly hours: readonly number[] }) {
  const most = Math.max(1, ...hours)
  const all = hours.reduce((sum, count) => sum + count, 0)
  const label =
    all === 0
      ? 'None in the last 24 hours'
      : `${exactCount(all)} in the last 24 hours, at most ${exactCount(most)} in one`
  const bars = hours.map((count, i) =>
    count === 0 ? '' : `M${i + 0.5} ${barsHeight}V${(barsHeight * (1 - Math.max(0.08, count / most))).toFixed(1)}`,
  )
  return (
    <svg
      viewBox={`0 0 ${hours.length} ${barsHeight}`}
      preserveAspectRatio="none"
      class="block h-6 w-full"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <line
        x1="0"
        x2={hours.length}
        y1={barsHeight}
        y2={barsHeight}
        class="stroke-line"
        vector-effect="non-scaling-stroke"
      />
      <path d={bars.join('')} class="stroke-bad" stroke-width="0.7" />
    </svg>
  )
}

interface GroupMenuProps {
  readonly queue: string
  readonly group: DeadGroup
  readonly done: () => unknown
}

function GroupMenu({ queue, group: { ids, count, error }, done }: GroupMenuProps) {
  const which = count > ids.length ? `the first ${exactCount(ids.length)}` : countOf(ids.length, 'job')
  const asking = { queue, of: 'of this error', done }
  return (
    <Menu
      label={`Do something to the jobs with: ${shortText(safeText(error), 60)}`}
      items={[
        { text: `Revive ${which} …`, onPick: () => askForDead('revive', ids, asking) },
        { text: `Delete ${which} …`, isDangerous: true, onPick: () => askForDead('delete', ids, asking) },
      ]}
    />
  )
}
