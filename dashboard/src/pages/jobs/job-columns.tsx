/** The job columns: the columns of a job list, for the state that it lists. */

import { failuresOf, type JobRow, type JobState } from '../../api/answers.js'
import { jobPage } from '../../api/api-path.js'
import type { Column } from '../../parts/data-table.js'
import { CountText, DurationText, Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Badge, StateBadge } from '../../parts/state-badge.js'
import { fieldText } from '../../words/field-words.js'
import { safeText, shortText } from '../../words/safe-text.js'

type JobColumn = Column<JobRow>

const id: JobColumn = {
  key: 'id',
  title: 'Job',
  width: 'minmax(7.5rem, 2.2fr)',
  show: (job) => (
    <span class="flex min-w-0 flex-wrap items-center gap-x-2">
      <a class="row-link" href={jobPage(nameOf(job))}>
        <Name text={job.id} most={32} isId />
      </a>
      {job.suspect && (
        <Badge tone="warn" sign="!" hint="Its worker died with it in hand">
          suspect
        </Badge>
      )}
    </span>
  ),
}
const task: JobColumn = {
  key: 'task',
  title: 'Task',
  width: 'minmax(4.5rem, 1.2fr)',
  show: (job) => <Name text={job.task} most={32} />,
}
const state: JobColumn = {
  key: 'state',
  title: 'State',
  width: '6rem',
  show: (job) => <StateBadge state={job.state} />,
}
const priority: JobColumn = {
  key: 'priority',
  title: 'Priority',
  width: '4.5rem',
  isNumber: true,
  priority: 3,
  show: (job) => <CountText count={job.priority} />,
}
const payloads: JobColumn = {
  key: 'payloads',
  title: 'Score',
  width: '6rem',
  isNumber: true,
  priority: 3,
  show: ({ payloads: [oldest] = [], payloadCount = 1 }) =>
    oldest === undefined ? '–' : `${oldest.score}${payloadCount > 1 ? ` +${payloadCount - 1}` : ''}`,
}
const group: JobColumn = {
  key: 'group',
  title: 'Group',
  width: 'minmax(5rem, 0.8fr)',
  priority: 3,
  show: (job) => (job.group === undefined ? '–' : <Name text={job.group} most={20} />),
}
const mostFields = 3
const fields: JobColumn = {
  key: 'fields',
  title: 'Fields',
  width: 'minmax(7rem, 1.2fr)',
  priority: 3,
  show: ({ fields: all = {} }) => {
    const texts = Object.entries(all).map(([name, value]) => safeText(fieldText(name, value)))
    if (texts.length === 0) return '–'
    const shown = texts.slice(0, mostFields).map((text) => shortText(text, 40))
    return (
      <span class="line-clamp-2 text-muted" title={texts.join('\n')}>
        {shown.join(', ')}
        {texts.length > mostFields && ` and ${texts.length - mostFields} more`}
      </span>
    )
  },
}
const attempts: JobColumn = {
  key: 'attempt',
  title: 'Attempt',
  width: '4.5rem',
  isNumber: true,
  priority: 3,
  show: (job) => <span class={job.attempt > 1 ? 'text-warn' : ''}>{job.attempt}</span>,
}
const failures: JobColumn = {
  key: 'failures',
  title: 'Failures',
  width: '5rem',
  isNumber: true,
  priority: 3,
  show: (job) => <CountText count={failuresOf(job)} />,
}
const progress: JobColumn = {
  key: 'progress',
  title: 'Progress',
  width: 'minmax(4rem, 1fr)',
  priority: 2,
  show: ({ progress: done }) =>
    done === undefined
      ? '–'
      : `${Math.round(done.fraction * 100)} %${done.note === undefined ? '' : ` ${shortText(safeText(done.note), 30)}`}`,
}
const error: JobColumn = {
  key: 'error',
  title: 'Error',
  width: 'minmax(10rem, 2fr)',
  priority: 3,
  show: (job) => <span class="line-clamp-1 text-muted">{errorLine(job)}</span>,
}
const worker: JobColumn = {
  key: 'host',
  title: 'Host, process',
  width: 'minmax(7rem, 1fr)',
  priority: 3,
  show: ({ host, pid }) => (host === undefined ? '–' : `${shortText(safeText(host), 20)}, ${pid ?? '–'}`),
}
const took: JobColumn = {
  key: 'took',
  title: 'Took',
  width: '6rem',
  isNumber: true,
  priority: 3,
  show: ({ startedAt, finishedAt }) => (
    <DurationText ms={startedAt && finishedAt ? Date.parse(finishedAt) - Date.parse(startedAt) : undefined} />
  ),
}

function moment(key: 'createdAt' | 'runAt' | 'startedAt' | 'finishedAt', title: string, shown?: 2 | 3): JobColumn {
  return { key, title, width: '6rem', ...(shown && { priority: shown }), show: (job) => <Moment at={job[key]} /> }
}

/** The reason for which a job waits, or when its state began. */
const since: JobColumn = {
  key: 'since',
  title: 'Since, or due',
  width: '6.5rem',
  show: (job) => <Moment at={job.finishedAt ?? job.startedAt ?? job.waitedUntil ?? job.runAt} />,
}
const readySince: JobColumn = {
  ...moment('runAt', 'Ready since'),
  show: ({ waitedUntil, runAt }) => <Moment at={waitedUntil ?? runAt} />,
}
const created = moment('createdAt', 'Enqueued', 3)

const waits: JobColumn = {
  key: 'waits',
  title: 'Waits because',
  width: 'minmax(8rem, 3fr)',
  priority: 2,
  show: ({ waits: [first] = [] }) =>
    first === undefined ? (
      '–'
    ) : (
      <span class="line-clamp-2 text-muted" title={safeText(first.text)}>
        {shortText(safeText(first.text), 160)}
      </span>
    ),
}

const stateColumns: Readonly<Record<JobState | 'all', readonly JobColumn[]>> = {
  all: [id, task, state, since, fields, attempts, payloads, priority, error],
  waiting: [id, task, moment('createdAt', 'Waits since'), waits, fields, priority, group],
  scheduled: [id, task, moment('runAt', 'Due'), fields, attempts, payloads, priority, group, created],
  ready: [id, task, readySince, waits, fields, attempts, payloads, priority, group],
  running: [id, task, moment('startedAt', 'Started'), progress, fields, attempts, worker, group],
  completed: [id, task, moment('finishedAt', 'Completed'), took, fields, attempts, created],
  dead: [id, task, error, fields, failures, moment('finishedAt', 'Died'), created],
  cancelled: [id, task, moment('finishedAt', 'Cancelled'), error, fields, created],
}

interface Shown {
  /** Jobs of an ordered queue have scores. */
  readonly isOrdered: boolean
  readonly hasFields: boolean
}

const chosenColumns = new Map<string, readonly JobColumn[]>()

/** The same array for the same arguments. */
export function columnsFor(listed: JobState | 'all', { isOrdered, hasFields }: Shown): readonly JobColumn[] {
  const key = `${listed} ${isOrdered} ${hasFields}`
  const known = chosenColumns.get(key)
  if (known !== undefined) return known
  const isShown = (column: JobColumn) => (column !== payloads || isOrdered) && (column !== fields || hasFields)
  const chosen = stateColumns[listed].filter(isShown)
  chosenColumns.set(key, chosen)
  return chosen
}

/** Whether a job of them has fields. */
export function hasFields(rows: readonly JobRow[] = []): boolean {
  return rows.some(({ fields: own = {} }) => Object.keys(own).length > 0)
}

const queue: JobColumn = {
  key: 'queue',
  title: 'Queue',
  width: 'minmax(7rem, 1fr)',
  show: (job) => <Name text={job.queue} most={32} />,
}

/** For jobs of several queues. */
export const foundColumns: readonly JobColumn[] = [id, queue, { ...task, priority: 3 }, state, since, attempts, error]

/** In an ordered queue an id may have a dead job next to a live one. */
export function nameOf({ queue, id: own, state: stands, payloads: scored }: JobRow) {
  const isBeside = stands === 'dead' && scored !== undefined
  return { queue, id: own, ...(isBeside && { part: 'morgue' as const }) }
}

/** Differs between the dead and the live job of an id: no id contains a NUL. */
export function rowKey({ id: own, state: stands }: JobRow): string {
  return stands === 'dead' ? `${own}\0dead` : own
}

/** The same among jobs of several queues. */
export function foundKey(job: JobRow): string {
  return `${job.queue}\0${rowKey(job)}`
}

function errorLine({ error: text, reason }: JobRow): string {
  const [line = ''] = (text ?? reason ?? '–').split('\n')
  return shortText(safeText(line), 160)
}
