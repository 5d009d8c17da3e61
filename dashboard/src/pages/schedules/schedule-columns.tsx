/** The schedule columns: the columns of the table of schedules. */

import type { ScheduleRow } from '../../api/answers.js'
import { at } from '../../api/api-path.js'
import { mayChange } from '../../api/session-state.js'
import { CountText, Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Menu } from '../../parts/popover-menu.js'
import { Badge } from '../../parts/state-badge.js'
import { byText, type Column } from '../../parts/table-column.js'
import { cronWords } from '../../words/cron-words.js'
import { durationWords } from '../../words/duration-words.js'
import { safeText } from '../../words/safe-text.js'
import { runNow, setPaused } from './schedule-acts.js'

export function Timing({ schedule: { cron, everyMs, timeZone } }: { readonly schedule: ScheduleRow }) {
  if (cron === undefined) return <>every {durationWords(everyMs ?? 0)}</>
  const words = cronWords(cron)
  return (
    <>
      {words ?? <code class="font-mono text-[0.92em]">{safeText(cron)}</code>}
      <span class="block text-xs text-muted" title={safeText(cron)}>
        {safeText(timeZone)}
      </span>
    </>
  )
}

function NextTick({ schedule: { isPaused, nextAt } }: { readonly schedule: ScheduleRow }) {
  if (isPaused)
    return (
      <Badge tone="warn" sign="‖">
        paused
      </Badge>
    )
  return nextAt === undefined ? <Badge hint="It has no tick to come">ended</Badge> : <Moment at={nextAt} />
}

function Acts({ schedule }: { readonly schedule: ScheduleRow }) {
  if (!mayChange.value) return null
  return (
    <Menu
      label={`Act on ${safeText(schedule.name)}`}
      items={[
        { text: 'Run now', onPick: () => void runNow(schedule) },
        schedule.isPaused
          ? { text: 'Resume', onPick: () => void setPaused(schedule, false) }
          : { text: 'Pause', onPick: () => void setPaused(schedule, true) },
      ]}
    />
  )
}

export const scheduleColumns: readonly Column<ScheduleRow>[] = [
  {
    ...{ key: 'name', title: 'Name', width: 'minmax(7rem, 2fr)' },
    show: ({ name }) => (
      <a class="row-link" href={`schedules?${new URLSearchParams({ schedule: name })}`}>
        <Name text={name} />
      </a>
    ),
    order: byText(({ name }) => name),
  },
  {
    ...{ key: 'timing', title: 'Ticks', width: 'minmax(7rem, 2fr)' },
    show: (schedule) => <Timing schedule={schedule} />,
  },
  {
    ...{ key: 'next', title: 'Next', width: '6rem' },
    show: (schedule) => <NextTick schedule={schedule} />,
    order: (a, b) => Date.parse(a.nextAt ?? '9999') - Date.parse(b.nextAt ?? '9999'),
  },
  { key: 'last', title: 'Last', width: '6rem', priority: 3, show: ({ lastAt }) => <Moment at={lastAt} /> },
  {
    ...{ key: 'task', title: 'Enqueues', width: 'minmax(9rem, 2fr)', priority: 3 },
    show: ({ task, queue }) => (
      <>
        <Name text={task} />{' '}
        <span class="text-muted">
          in{' '}
          <a class="link" href={at`queues/${queue}`}>
            <Name text={queue} most={24} />
          </a>
        </span>
      </>
    ),
  },
  {
    ...{ key: 'ticked', title: 'Enqueued', width: '4.5rem', priority: 3, isNumber: true },
    show: ({ ticked }) => <CountText count={ticked} />,
  },
  {
    ...{ key: 'skipped', title: 'Skipped', width: '4.5rem', priority: 3, isNumber: true },
    show: ({ skipped }) => <CountText count={skipped} />,
  },
  {
    ...{ key: 'missed', title: 'Missed', width: '4.5rem', priority: 3, isNumber: true },
    show: ({ missed }) => <CountText count={missed} />,
  },
  {
    key: 'acts',
    title: 'Actions',
    width: '4rem',
    priority: 2,
    isNumber: true,
    show: (schedule) => <Acts schedule={schedule} />,
  },
]
