/** The schedule columns: the columns of the table of schedules. */

import type { ScheduleRow } from '../../api/answers.js'
import { mayChange } from '../../api/api-client.js'
import { at } from '../../api/api-path.js'
import { byText, type Column } from '../../parts/data-table.js'
import { CountText, Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Menu } from '../../parts/popover-menu.js'
import { Badge } from '../../parts/state-badge.js'
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

const halfHours = 48
const stripHeight = 20

/** The half hours in which it ticks, the present one at the left; a line each six hours. */
function DayStrip({ places }: { readonly places: readonly number[] }) {
  const label =
    places.length === 0
      ? 'No tick in the next 24 hours'
      : `Ticks in ${places.length} of the next ${halfHours} half hours`
  return (
    <svg
      viewBox={`0 0 ${halfHours} ${stripHeight}`}
      preserveAspectRatio="none"
      class="block h-5 w-full"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      {[0, 12, 24, 36, 48].map((x) => (
        <line key={x} x1={x} x2={x} y1="0" y2={stripHeight} class="stroke-line" vector-effect="non-scaling-stroke" />
      ))}
      <path
        d={places.map((place) => `M${place + 0.5} 3V${stripHeight - 3}`).join('')}
        class="stroke-accent"
        stroke-width="0.8"
      />
    </svg>
  )
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
  {
    key: 'day',
    title: 'Next 24 hours',
    width: 'minmax(8rem, 2fr)',
    priority: 3,
    show: ({ nextDay = [] }) => <DayStrip places={nextDay} />,
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

const dayNames = ['Sundays', 'Mondays', 'Tuesdays', 'Wednesdays', 'Thursdays', 'Fridays', 'Saturdays']
const shortDays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const named: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const number = /^\d{1,2}$/
const step = /^\*\/(\d{1,2})$/

/**
 * `every 15 min`, `daily at 03:00`, `Mondays at 08:30`, `on day 1 of the month at 00:00`; undefined for other forms.
 */
function cronWords(cron: string): string | undefined {
  const fields = (named[cron.toLowerCase()] ?? cron).trim().split(/\s+/)
  const [second, minute = '', hour = '', day = '', month = '', weekday = ''] =
    fields.length === 6 ? fields : ['0', ...fields]
  if (fields.length < 5 || fields.length > 6 || second !== '0' || month !== '*') return undefined
  const days = dayWords(day, weekday)
  if (days === undefined) return undefined
  if (number.test(minute) && number.test(hour)) return `${days} at ${twoDigits(hour)}:${twoDigits(minute)}`
  if (days !== 'daily') return undefined
  if (hour === '*') return ofHour(minute)
  const hours = stepOf(hour, 24)
  return minute === '0' && hours !== undefined ? `every ${durationWords(hours * 3_600_000)}` : undefined
}

function ofHour(minute: string): string | undefined {
  if (minute === '*') return 'every minute'
  if (number.test(minute)) return minute === '0' ? 'hourly' : `hourly at minute ${Number(minute)}`
  const minutes = stepOf(minute, 60)
  return minutes === undefined ? undefined : `every ${durationWords(minutes * 60_000)}`
}

/** If the step does not divide the whole, the last interval is shorter: no regular "every". */
function stepOf(field: string, whole: number): number | undefined {
  const size = Number(step.exec(field)?.[1])
  return size > 0 && whole % size === 0 ? size : undefined
}

function dayWords(day: string, weekday: string): string | undefined {
  if (day === '*' && (weekday === '*' || weekday === '?')) return 'daily'
  if (day === '*') return weekdayWords(weekday.toUpperCase())
  return number.test(day) && weekday === '*' ? `on day ${Number(day)} of the month` : undefined
}

function weekdayWords(field: string): string | undefined {
  if (field === '1-5' || field === 'MON-FRI') return 'on weekdays'
  const names = field.split(',').map((one) => dayNames[/^[0-7]$/.test(one) ? Number(one) % 7 : shortDays.indexOf(one)])
  return names.every((name) => name !== undefined) ? names.join(', ') : undefined
}

function twoDigits(text: string): string {
  return text.padStart(2, '0')
}
