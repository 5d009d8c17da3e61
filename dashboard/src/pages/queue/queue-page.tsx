/** The queue page: one queue with its counts, charts, limits, workers and settings. */

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { LiveEvent, QueueDetail, WorkerRow } from '../../api/answers.js'
import { get, mayChange, session } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { at } from '../../api/api-path.js'
import { openStream } from '../../api/live-stream.js'
import { type Column, DataTable } from '../../parts/data-table.js'
import { Moment } from '../../parts/moment-text.js'
import { CopyButton, Name } from '../../parts/name-text.js'
import { PageHead, Section } from '../../parts/page-head.js'
import { Stat, Stats } from '../../parts/stat-tile.js'
import { Badge, QueueBadges } from '../../parts/state-badge.js'
import { TableNotice } from '../../parts/table-notice.js'
import { useResource } from '../../state/resource.js'
import { countOf, countWords, exactCount } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { safeText } from '../../words/safe-text.js'
import { QueueTabs } from '../queue-tabs.js'
import { WaitReasons } from '../wait-reasons.js'
import { EventLine, eventNames } from './event-line.js'
import { QueueActions } from './queue-actions.js'
import { QueueCharts } from './queue-charts.js'
import { QueueLimits } from './queue-limits.js'

const everyMs = 2_000

export function QueuePage({ queue: name }: { readonly queue: string }) {
  const detail = useResource<QueueDetail>((signal) => get(at`queues/${name}`, { signal }), [name], { everyMs })
  const queue = detail.data.value
  const error = detail.error.value
  const features = session.value?.features
  if (error instanceof ApiError && error.status === 404)
    return (
      <>
        <PageHead title={name} crumbs={crumbs} />
        <div class="panel">
          <TableNotice>
            <p>There is no queue of that name. It may have been removed from the configuration.</p>
            <a class="link" href="./">
              All queues
            </a>
          </TableNotice>
        </div>
      </>
    )
  return (
    <>
      <PageHead
        title={name}
        crumbs={crumbs}
        badges={queue && <QueueBadges queue={queue} />}
        actions={
          mayChange.value && (
            <div class="flex min-h-8 flex-wrap gap-2">
              {queue && <QueueActions queue={queue} refresh={() => void detail.refresh()} />}
            </div>
          )
        }
      >
        <span class="inline-flex items-center gap-1">
          <Name text={name} most={80} />
          <CopyButton text={name} what={name} />
        </span>
      </PageHead>
      <QueueTabs queue={name} open="queue" counts={queue} />
      {error !== undefined && (
        <p role="alert" class="mb-3 text-bad">
          {error.message}
        </p>
      )}
      {queue?.damaged !== undefined && (
        <p role="alert" class="mb-3 rounded-md bg-bad-wash p-3 wrap-anywhere text-bad">
          {queue.damaged}
        </p>
      )}
      {queue?.waits !== undefined && (
        <div class="mb-4">
          <WaitReasons
            title={queue.ready > 0 ? 'The first of its ready jobs waits because' : 'This queue'}
            waits={queue.waits}
          />
        </div>
      )}
      <QueueTiles name={name} queue={queue} />
      {features?.history && <QueueCharts name={name} queue={queue} />}
      {queue && (
        <>
          {queue.suspects > 0 && <Suspects name={name} count={queue.suspects} />}
          <QueueLimits queue={queue} refresh={() => void detail.refresh()} />
          {features?.workers && <QueueWorkers workers={queue.workers} />}
          {features?.live && <LiveFeed queue={name} />}
          <QueueSettings settings={queue.settings} />
        </>
      )}
    </>
  )
}

const crumbs = [{ text: 'Overview', href: './' }]

function Suspects({ name, count }: { readonly name: string; readonly count: number }) {
  return (
    <p class="mt-6 rounded-md bg-warn-wash p-3 text-warn">
      {countOf(count, 'job')} lost a worker process while running. Each waits to run alone in a process, so that no
      other job dies with it.{' '}
      <a class="underline" href={`${at`queues/${name}/jobs`}?state=ready`}>
        Show what waits
      </a>
    </p>
  )
}

interface TilesProps {
  readonly name: string
  /** Undefined: not known yet. */
  readonly queue: QueueDetail | undefined
}

/** Its counts, each with a link to the counted jobs. */
function QueueTiles({ name, queue }: TilesProps) {
  const jobs = (state: string) => `${at`queues/${name}/jobs`}?state=${state}`
  const count = (key: 'ready' | 'scheduled' | 'waiting' | 'running' | 'dead' | 'processed' | 'failed') =>
    queue && countWords(queue[key])
  const isOrdered = queue?.kind === 'ordered'
  return (
    <Stats>
      <Stat label="Ready" value={count('ready')} href={jobs('ready')} note={queue && readyNote(queue)} />
      <Stat label="Scheduled" value={count('scheduled')} href={jobs('scheduled')} note="due later" />
      {queue !== undefined && queue.waiting > 0 && (
        <Stat label="Waiting" value={count('waiting')} href={jobs('waiting')} note="for jobs or signals" />
      )}
      <Stat label="Running" value={count('running')} href={jobs('running')} note={queue && boundNote(queue)} />
      <Stat
        label="Dead"
        value={count('dead')}
        href={at`queues/${name}/morgue`}
        note="in the morgue"
        tone={queue && queue.dead > 0 ? 'bad' : 'ink'}
      />
      <Stat
        label="Lag"
        value={queue && durationWords(queue.lagMs)}
        note="of the oldest due job"
        tone={queue && queue.lagMs >= 60_000 ? 'warn' : 'ink'}
      />
      {isOrdered && <Stat label="Payloads" value={queue && countWords(queue.payloads)} note="that wait" />}
      <Stat label="Processed" value={count('processed')} note="since it exists" />
      <Stat label="Failures" value={count('failed')} note={queue && endNote(queue)} />
    </Stats>
  )
}

function readyNote({ suspects, retries }: QueueDetail): string {
  if (suspects > 0) return countOf(suspects, 'suspect')
  return `${countWords(retries)} after a failure`
}

function boundNote({ maxRunning }: QueueDetail): string {
  if (maxRunning === undefined) return 'without a bound'
  return typeof maxRunning === 'number'
    ? `of at most ${countWords(maxRunning)}`
    : `${maxRunning.perGroup} of each group`
}

function endNote({ crashed, expired }: QueueDetail): string {
  return `${countWords(crashed)} crashed, ${countWords(expired)} expired`
}

/** Settings that are shown elsewhere on the page. */
const elsewhere = new Set(['name', 'kind', 'ordered', 'paused', 'draining', 'throttle'])

/** `claimSize` as `claim size`; the value has the unit. */
function keyWords(key: string): string {
  const words = key.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function valueWords(key: string, value: unknown): string {
  if (typeof value === 'number') return key.endsWith('Ms') ? durationWords(value) : exactCount(value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'object' || value === null) return safeText(String(value))
  const parts = Object.entries(value).map(([name, part]) => `${keyWords(name).toLowerCase()} ${valueWords(name, part)}`)
  return parts.length === 0 ? 'without a bound' : parts.join(', ')
}

/** The declared or stored settings, in words. */
function QueueSettings({ settings }: { readonly settings: Readonly<Record<string, unknown>> }) {
  const shown = Object.entries(settings).filter(([key, value]) => !elsewhere.has(key) && value !== undefined)
  return (
    <Section title="Settings">
      <dl class="panel grid gap-x-8 px-3.5 py-2 sm:columns-2 sm:block xl:columns-3">
        {shown.map(([key, value]) => (
          <div key={key} class="flex break-inside-avoid justify-between gap-4 border-b border-line py-1.5 text-sm">
            <dt class="text-muted">{keyWords(key)}</dt>
            <dd class="text-end wrap-anywhere">{valueWords(key, value)}</dd>
          </div>
        ))}
      </dl>
    </Section>
  )
}

const workerColumns: readonly Column<WorkerRow>[] = [
  {
    key: 'worker',
    title: 'Process',
    width: 'minmax(10rem, 2fr)',
    show: ({ host, pid, state, process }) => (
      <span class="flex flex-wrap items-center gap-2">
        <a class="row-link" href="workers">
          <Name text={host} /> · {pid}
        </a>
        {state === 'stopping' && <Badge tone="warn">stopping</Badge>}
        {process === 'dead' && <Badge tone="bad">dead</Badge>}
      </span>
    ),
  },
  {
    key: 'running',
    title: 'In hand',
    width: '5rem',
    isNumber: true,
    show: ({ running, slots }) => `${running} / ${slots}`,
  },
  { key: 'version', title: 'Version', width: '6rem', priority: 2, show: ({ version }) => version ?? '–' },
  { key: 'since', title: 'Since', width: '7rem', show: ({ startedAt }) => <Moment at={startedAt} /> },
]

interface WorkersProps {
  readonly workers: readonly WorkerRow[] | undefined
}

/** The worker processes that serve the queue. */
function QueueWorkers({ workers }: WorkersProps) {
  return (
    <Section title="Workers">
      <DataTable
        label="Workers of this queue"
        columns={workerColumns}
        rows={workers}
        keyOf={({ id }) => id}
        empty={
          <>
            <p>No worker serves this queue.</p>
            <p>Start workers with millrace work, or check which queues yours serve.</p>
          </>
        }
      />
    </Section>
  )
}

const mostEvents = 12

/** The latest events of a queue's jobs, newest first. */
function LiveFeed({ queue }: { readonly queue: string }) {
  const events = useSignal<readonly (LiveEvent & { readonly number: number })[]>([])
  useEffect(() => {
    let number = 0
    let waiting: LiveEvent[] = []
    let frame = 0
    // A queue may have thousands of events a second: they are drawn together.
    const show = () => {
      frame = 0
      const fresh = waiting.slice(-mostEvents).map((event) => ({ ...event, number: number++ }))
      waiting = []
      events.value = [...fresh.reverse(), ...events.value].slice(0, mostEvents)
    }
    const hear = (event: LiveEvent) => {
      waiting.push(event)
      if (waiting.length > mostEvents) waiting.shift()
      if (frame === 0) frame = requestAnimationFrame(show)
    }
    const close = openStream(at`queues/${queue}/events`, {
      on: Object.fromEntries(eventNames.map((name) => [name, hear])),
    })
    return () => {
      cancelAnimationFrame(frame)
      close()
    }
  }, [queue])
  return (
    <Section
      title="Live events"
      actions={
        <a class="link text-sm" href={at`queues/${queue}/events`}>
          All events
        </a>
      }
    >
      <ol class="panel h-76 overflow-hidden py-1.5" aria-label="The latest events">
        {events.value.map((event) => (
          <EventLine key={event.number} event={event} />
        ))}
        {events.value.length === 0 && (
          <li class="grid h-full place-items-center text-muted">Nothing has happened since you came.</li>
        )}
      </ol>
    </Section>
  )
}
