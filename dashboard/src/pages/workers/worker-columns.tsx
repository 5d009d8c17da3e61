/** The worker columns: the columns of the table of workers. */

import type { WorkerRow } from '../../api/answers.js'
import { Meter } from '../../parts/fill-meter.js'
import { DurationText, Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Badge } from '../../parts/state-badge.js'
import { byText, type Column } from '../../parts/table-column.js'
import { bytesWords } from '../../words/count-words.js'
import { safeText, shortText } from '../../words/safe-text.js'

/** A dead worker whose record has not lapsed yet: its jobs come back once a recoverer notices. */
export function WorkerState({ worker: { process, state } }: { readonly worker: WorkerRow }) {
  if (process === 'dead')
    return (
      <Badge tone="bad" sign="✕" hint="Its process is gone; its jobs come back to their queues">
        dead
      </Badge>
    )
  if (process === 'silent')
    return (
      <Badge tone="warn" sign="?" hint="It has not reported for 30 s or longer: probably its machine is gone">
        silent
      </Badge>
    )
  if (state === 'stopping')
    return (
      <Badge tone="warn" sign="↓" hint="It takes no more jobs, and ends when those in hand have">
        stopping
      </Badge>
    )
  return (
    <Badge tone="good" sign="●">
      running
    </Badge>
  )
}

function WorkerLink({ worker: { id, host, pid } }: { readonly worker: WorkerRow }) {
  return (
    <a class="row-link" href={`workers?${new URLSearchParams({ worker: id })}`}>
      <Name text={host} most={28} /> <span class="font-normal text-muted">· {pid}</span>
    </a>
  )
}

const byNumber = (of: (worker: WorkerRow) => number) => (a: WorkerRow, b: WorkerRow) => of(a) - of(b)

export const workerColumns: readonly Column<WorkerRow>[] = [
  {
    ...{ key: 'worker', title: 'Host · pid', width: 'minmax(8rem, 2fr)' },
    show: (worker) => <WorkerLink worker={worker} />,
    order: byText(({ host, pid }) => `${host} ${String(pid).padStart(10)}`),
  },
  { key: 'state', title: 'State', width: '6rem', show: (worker) => <WorkerState worker={worker} /> },
  {
    ...{ key: 'jobs', title: 'In hand', width: 'minmax(5rem, 8rem)' },
    show: ({ running, slots }) => <Meter label="Jobs in hand" hits={running} limit={slots} isSmall />,
    order: byNumber(({ running }) => running),
  },
  {
    ...{ key: 'queues', title: 'Queues', width: 'minmax(8rem, 3fr)', priority: 3 },
    show: ({ queues }) => {
      const text = queues.map(safeText).join(', ')
      return <span title={text}>{shortText(text, 60)}</span>
    },
  },
  {
    ...{ key: 'memory', title: 'Memory', width: '5rem', isNumber: true },
    show: ({ rssBytes }) => (rssBytes === undefined ? '–' : bytesWords(rssBytes)),
    order: byNumber(({ rssBytes = 0 }) => rssBytes),
  },
  {
    ...{ key: 'delay', title: 'Loop delay', width: '5rem', priority: 3, isNumber: true },
    show: ({ loopDelayMs }) => (
      <span class={(loopDelayMs ?? 0) >= 200 ? 'text-warn' : undefined}>
        <DurationText ms={loopDelayMs} />
      </span>
    ),
    order: byNumber(({ loopDelayMs = 0 }) => loopDelayMs),
  },
  {
    ...{ key: 'version', title: 'Version', width: '4.5rem', priority: 3 },
    show: ({ version }) => <Name text={version ?? '–'} most={12} />,
  },
  {
    ...{ key: 'started', title: 'Started', width: '5.5rem', priority: 3, isNumber: true },
    show: ({ startedAt }) => <Moment at={startedAt} />,
    order: byText(({ startedAt }) => startedAt),
  },
  {
    ...{ key: 'seen', title: 'Seen', width: '5.5rem', priority: 3, isNumber: true },
    show: ({ seenAt }) => <Moment at={seenAt} />,
  },
]
