/** The workers page: every worker process, its state, and the jobs that it holds. */

import type { HeldJob, ListPage, WorkerRow } from '../api/answers.js'
import { get, mayChange, post } from '../api/api-client.js'
import { at, jobPage } from '../api/api-path.js'
import { byText, type Column, DataTable } from '../parts/data-table.js'
import { Details } from '../parts/detail-list.js'
import { Meter } from '../parts/fill-meter.js'
import { SearchField, Select } from '../parts/form-field.js'
import { Dialog, DialogButtons } from '../parts/modal-dialog.js'
import { DurationText, Moment } from '../parts/moment-text.js'
import { Name } from '../parts/name-text.js'
import { PageHead } from '../parts/page-head.js'
import { Button } from '../parts/press-button.js'
import { Stat, Stats } from '../parts/stat-tile.js'
import { Badge } from '../parts/state-badge.js'
import { TableNotice } from '../parts/table-notice.js'
import { askToConfirm } from '../state/asked-action.js'
import { query, setQuery } from '../state/page-address.js'
import { useResource } from '../state/resource.js'
import { say } from '../state/toast-list.js'
import { bytesWords, countOf, countWords } from '../words/count-words.js'
import { durationWords } from '../words/duration-words.js'
import { safeText, shortText } from '../words/safe-text.js'

/** Workers report every few seconds. */
const everyMs = 2_000

const states = [
  ['', 'Every state'],
  ['running', 'Running'],
  ['stopping', 'Stopping'],
  ['silent', 'Silent'],
  ['dead', 'Dead'],
] as const

function fits(worker: WorkerRow, text: string, state: string): boolean {
  const { id, host, pid, queues, process } = worker
  const words = [id, host, String(pid), ...queues].join(' ').toLowerCase()
  const shown = process === 'dead' || process === 'silent' ? process : worker.state
  return words.includes(text.toLowerCase()) && (state === '' || state === shown)
}

const sum = (workers: readonly WorkerRow[], of: (worker: WorkerRow) => number | undefined) =>
  workers.reduce((all, worker) => all + (of(worker) ?? 0), 0)

export function WorkersPage() {
  const list = useResource((signal) => get<ListPage<WorkerRow>>('workers', { signal }), [], { everyMs })
  const workers = list.data.value?.items
  const text = query.value.get('q') ?? ''
  const state = query.value.get('state') ?? ''
  const open = workers?.find(({ id }) => id === query.value.get('worker'))
  const isFiltered = text !== '' || state !== ''
  return (
    <>
      <PageHead title="Workers" />
      <Totals workers={workers} />
      <div class="my-4 flex flex-wrap gap-2">
        <SearchField label="Filter workers" placeholder="Host, pid or queue  /" />
        <Select label="State" value={state} choices={states} onChange={(chosen) => setQuery({ state: chosen })} />
      </div>
      <DataTable
        label="Workers"
        columns={workerColumns}
        rows={workers?.filter((worker) => fits(worker, text, state))}
        keyOf={({ id }) => id}
        sort="worker"
        error={list.error.value}
        onRetry={() => void list.refresh()}
        empty={
          isFiltered ? (
            <p>No worker fits the filter.</p>
          ) : (
            <>
              <p class="font-medium text-ink">Nobody works here now.</p>
              <p>
                Jobs wait until a worker starts: <code class="font-mono">npx millrace work</code>
              </p>
            </>
          )
        }
      />
      {open && <WorkerDialog worker={open} onChanged={() => void list.refresh()} />}
    </>
  )
}

function Totals({ workers }: { readonly workers: readonly WorkerRow[] | undefined }) {
  const told = (words: (all: readonly WorkerRow[]) => string) => workers && words(workers)
  const hosts = (all: readonly WorkerRow[]) => new Set(all.map(({ host }) => host)).size
  return (
    <Stats>
      <Stat label="Workers" value={told((all) => countWords(all.length))} />
      <Stat label="Hosts" value={told((all) => countWords(hosts(all)))} />
      <Stat
        label="Jobs in hand"
        value={told((all) => countWords(sum(all, ({ running }) => running)))}
        note={told((all) => `of ${countWords(sum(all, ({ slots }) => slots))} slots`)}
      />
      <Stat
        label="Memory"
        value={told((all) => bytesWords(sum(all, ({ rssBytes }) => rssBytes)))}
        hint="As the processes report it"
      />
      <Stat
        label="Slowest event loop"
        value={told((all) => durationWords(Math.max(0, ...all.map(({ loopDelayMs = 0 }) => loopDelayMs))))}
        hint="How late timers were since the last report, at the 99th percentile"
      />
    </Stats>
  )
}

/** A dead worker whose record has not lapsed yet: its jobs come back once a recoverer notices. */
function WorkerState({ worker: { process, state } }: { readonly worker: WorkerRow }) {
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

const workerColumns: readonly Column<WorkerRow>[] = [
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

interface WorkerProps {
  readonly worker: WorkerRow
  readonly onChanged: () => void
}

const orders = {
  stop: {
    verb: 'Stop the worker',
    text: 'It takes no more jobs, finishes those in hand within its grace, and ends. No other takes its place.',
    done: 'will stop after its current jobs',
  },
  recycle: {
    verb: 'Recycle the worker',
    text: 'It takes no more jobs, finishes those in hand within its grace, and ends. Its supervisor, if it has one, puts a fresh process in its place.',
    done: 'will be replaced after its current jobs',
  },
} as const

function ask(order: keyof typeof orders, { worker: { id, host, pid, running }, onChanged }: WorkerProps): void {
  const { verb, text, done } = orders[order]
  const name = `${shortText(safeText(host), 30)} · ${pid}`
  askToConfirm({
    ...{ title: `${verb} ${name}?`, verb, isDangerous: order === 'stop' },
    text: `${text} It has ${countOf(running, 'job')} in hand, and hears of this within 20 s.`,
    act: () => post(at`workers/${id}/` + order),
    done: () => {
      say(`${name} ${done}.`)
      onChanged()
    },
  })
}

function WorkerDialog(props: WorkerProps) {
  const { worker } = props
  return (
    <Dialog
      title={`${shortText(safeText(worker.host), 40)} · ${worker.pid}`}
      onClose={() => setQuery({ worker: undefined })}
    >
      <Details
        details={[
          ['State', <WorkerState key="state" worker={worker} />],
          ['Id', <Name key="id" text={worker.id} most={36} isId canCopy />],
          ['Queues', worker.queues.map(safeText).join(', ')],
          ['Slots', `${worker.running} of ${worker.slots} at work`],
          ['Selector', worker.selector],
          ['Tasks', worker.tasks === undefined ? undefined : countOf(worker.tasks, 'task')],
          ['Memory', worker.rssBytes === undefined ? undefined : bytesWords(worker.rssBytes)],
          [
            'Loop delay',
            worker.loopDelayMs === undefined ? undefined : <DurationText key="delay" ms={worker.loopDelayMs} />,
          ],
          ['Millrace', worker.version],
          ['Started', <Moment key="started" at={worker.startedAt} />],
          ['Seen', <Moment key="seen" at={worker.seenAt} />],
        ]}
      />
      <InHand id={worker.id} />
      <DialogButtons>
        {mayChange.value && (
          <>
            <Button kind="danger" onPress={() => ask('stop', props)}>
              Stop
            </Button>
            <Button onPress={() => ask('recycle', props)}>Recycle</Button>
          </>
        )}
        <Button kind="main" onPress={() => setQuery({ worker: undefined })}>
          Close
        </Button>
      </DialogButtons>
    </Dialog>
  )
}

function InHand({ id }: { readonly id: string }) {
  const held = useResource(
    (signal) => get<{ readonly items: readonly HeldJob[]; readonly more: boolean }>(at`workers/${id}/jobs`, { signal }),
    [id],
    { everyMs },
  )
  const { items = [], more = false } = held.data.value ?? {}
  if (held.error.value) return <TableNotice error={held.error.value} />
  return (
    <section aria-label="Jobs in hand" class="min-h-24">
      <h3 class="mb-1 font-medium">Jobs in hand</h3>
      {held.data.value !== undefined && items.length === 0 && <p class="text-muted">None now.</p>}
      <ul class="divide-y divide-line">
        {items.map((job) => (
          <li key={`${job.queue} ${job.id}`} class="py-1.5">
            <a class="link" href={jobPage(job)}>
              <Name text={job.id} most={36} isId />
            </a>
            <div class="text-sm text-muted">
              <Name text={job.task} /> in <Name text={job.queue} /> ·{' '}
              {job.startedAt ? <Moment at={job.startedAt} /> : 'reserved'}
              {job.progress && ` · ${Math.round(job.progress.fraction * 100)} %`}
              {job.progress?.note && ` · ${shortText(safeText(job.progress.note), 60)}`}
            </div>
          </li>
        ))}
      </ul>
      {more && <p class="text-sm text-muted">And more.</p>}
    </section>
  )
}
