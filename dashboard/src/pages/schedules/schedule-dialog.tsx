/** The schedule dialog: everything about one schedule, its next ticks and its last job, and its actions. */

import type { JobRow, ListPage, ScheduleRow } from '../../api/answers.js'
import { get, mayChange } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { at, jobAddress, jobPage } from '../../api/api-path.js'
import { Details } from '../../parts/detail-list.js'
import { JsonView } from '../../parts/json-view.js'
import { Dialog, DialogButtons } from '../../parts/modal-dialog.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Button } from '../../parts/press-button.js'
import { Badge, StateBadge } from '../../parts/state-badge.js'
import { TableNotice } from '../../parts/table-notice.js'
import { setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { exactCount } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { fullMoment } from '../../words/moment-words.js'
import { safeText, shortText } from '../../words/safe-text.js'
import { loadedAgain, runNow, setPaused } from './schedule-acts.js'
import { Timing } from './schedule-columns.js'

const close = () => setQuery({ schedule: undefined })

const missedWords = {
  skip: 'none is enqueued later',
  latest: 'the latest is enqueued later',
  all: 'all are enqueued later',
} as const

export function ScheduleDialog({ name }: { readonly name: string }) {
  const found = useResource((signal) => get<ScheduleRow>(at`schedules/${name}`, { signal }), [name, loadedAgain.value])
  const schedule = found.data.value
  return (
    <Dialog title={shortText(safeText(name), 60)} onClose={close}>
      {found.error.value && <TableNotice error={found.error.value} />}
      {schedule === undefined ? <div class="waiting h-64" /> : <About schedule={schedule} />}
      <DialogButtons>
        {mayChange.value && schedule && (
          <>
            <Button onPress={() => setPaused(schedule, !schedule.isPaused)}>
              {schedule.isPaused ? 'Resume' : 'Pause'}
            </Button>
            <Button onPress={() => runNow(schedule)}>Run now</Button>
          </>
        )}
        <Button kind="main" onPress={close}>
          Close
        </Button>
      </DialogButtons>
    </Dialog>
  )
}

function About({ schedule }: { readonly schedule: ScheduleRow }) {
  const { task, queue, cron, onMissed, overlap, jitterMs, from, until, isDeclared, ticked, skipped, missed } = schedule
  return (
    <>
      <Details
        details={[
          ['Ticks', <Timing key="ticks" schedule={schedule} />],
          [
            'Cron',
            cron === undefined ? undefined : (
              <code key="cron" class="font-mono">
                {safeText(cron)}
              </code>
            ),
          ],
          ['Task', <Name key="task" text={task} most={60} />],
          [
            'Queue',
            <a key="queue" class="link" href={at`queues/${queue}`}>
              <Name text={queue} />
            </a>,
          ],
          ['Last tick', <Moment key="last" at={schedule.lastAt} />],
          [
            'Last job',
            schedule.lastId === undefined ? undefined : <LastJob key="job" queue={queue} id={schedule.lastId} />,
          ],
          ['Enqueued', `${exactCount(ticked)}; ${exactCount(skipped)} skipped, ${exactCount(missed)} missed`],
          ['When missed', missedWords[onMissed]],
          ['Overlap', overlap === 'skip' ? 'a tick is skipped while the job before waits or runs' : 'allowed'],
          ['Jitter', jitterMs === 0 ? undefined : `up to ${durationWords(jitterMs)}`],
          ['From', from === undefined ? undefined : fullMoment(Date.parse(from))],
          ['Until', until === undefined ? undefined : fullMoment(Date.parse(until))],
          ['Declared', isDeclared ? 'in the configuration' : 'set at run time'],
        ]}
      />
      {!schedule.isPaused && <NextTicks name={schedule.name} />}
      <TickJobs name={schedule.name} />
      {schedule.payloadsHidden && <p class="text-muted">This dashboard hides inputs.</p>}
      {schedule.input !== undefined && (
        <section aria-label="Input">
          <h3 class="mb-1 font-medium">Input</h3>
          <JsonView value={schedule.input} label="input" />
        </section>
      )}
    </>
  )
}

/** Its present state; a job of which nothing is kept has completed. */
function LastJob({ queue, id }: { readonly queue: string; readonly id: string }) {
  const job = useResource(
    (signal) => get<JobRow>(jobAddress({ queue, id }), { signal }),
    [queue, id, loadedAgain.value],
  )
  const isGone = job.error.value instanceof ApiError && job.error.value.status === 404
  return (
    <span class="inline-flex flex-wrap items-center gap-2">
      <a class="link" href={jobPage({ queue, id })}>
        <Name text={id} most={34} isId />
      </a>
      {job.data.value && <StateBadge state={job.data.value.state} />}
      {isGone && <Badge hint="It completed, or was deleted">not kept</Badge>}
    </span>
  )
}

const mostTicks = 5

/** The latest ticks of which a job is kept. */
function TickJobs({ name }: { readonly name: string }) {
  const jobs = useResource(
    (signal) => get<ListPage<JobRow>>(at`schedules/${name}/jobs`, { signal }),
    [name, loadedAgain.value],
  )
  const items = jobs.data.value?.items ?? []
  if (items.length === 0) return null
  return (
    <section aria-label="Latest ticks with their jobs">
      <h3 class="mb-1 font-medium">Latest ticks with their jobs</h3>
      <ol class="grid gap-1">
        {items.slice(0, mostTicks).map(({ queue, id, state, schedule }) => (
          <li key={id} class="flex flex-wrap items-center justify-between gap-x-4">
            <a class="link" href={jobPage({ queue, id })}>
              <Moment at={schedule?.tickAt} />
            </a>
            <StateBadge state={state} />
          </li>
        ))}
      </ol>
    </section>
  )
}

function NextTicks({ name }: { readonly name: string }) {
  const next = useResource(
    (signal) => get<{ readonly items: readonly string[] }>(at`schedules/${name}/next?count=5`, { signal }),
    [name, loadedAgain.value],
  )
  return (
    <section aria-label="Next ticks" class="min-h-36">
      <h3 class="mb-1 font-medium">Next ticks</h3>
      <ol>
        {next.data.value?.items.map((tick) => (
          <li key={tick} class="flex justify-between gap-4">
            <span>{fullMoment(Date.parse(tick))}</span>
            <span class="text-muted">
              <Moment at={tick} />
            </span>
          </li>
        ))}
      </ol>
      {next.data.value?.items.length === 0 && <p class="text-muted">None: it has ended.</p>}
    </section>
  )
}
