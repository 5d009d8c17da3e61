/** The job page: everything that is known about one job, live, and its actions. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { mayChange, redacts } from '../../api/api-client.js'
import { at, type JobName, jobAddress, jobNamed, queryText } from '../../api/api-path.js'
import { latePart } from '../../parts/late-part.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { PageHead, Panel } from '../../parts/page-head.js'
import { Menu } from '../../parts/popover-menu.js'
import { Button } from '../../parts/press-button.js'
import { Badge, StateBadge } from '../../parts/state-badge.js'
import { TableNotice, WaitingRows } from '../../parts/table-notice.js'
import { query } from '../../state/page-address.js'
import { countOf, exactCount } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { safeText } from '../../words/safe-text.js'
import { EnqueueDialog } from '../queue/enqueue-dialog.js'
import { againForm, againMeta } from '../queue/job-form.js'
import { WaitReasons } from '../wait-reasons.js'
import { AttemptPanel } from './attempt-panel.js'
import { EndDialog } from './end-dialog.js'
import { FieldEditor } from './field-editor.js'
import { actsOf, type JobDialog } from './job-acts.js'
import { hasEnded, isOrdered, isShownWhole, type JobDetail, type Relative } from './job-detail.js'
import { JobTimeline } from './job-timeline.js'
import { JoinPanel } from './join-panel.js'
import { useLiveJob } from './live-job.js'
import { LogPanel } from './log-panel.js'
import { PayloadPanel } from './payload-panel.js'
import { SignalPanel } from './signal-panel.js'
import { StepPanel } from './step-panel.js'

/** `id`: as in the path; an id that does not fit there is in the query. */
export function JobPage({ queue, id }: { readonly queue: string; readonly id: string }) {
  const name = jobNamed(queue, id, query.value)
  return <NamedJob key={jobAddress(name)} name={name} />
}

function NamedJob({ name }: { readonly name: JobName }) {
  const { detail, log, isGone, endedHere } = useLiveJob(name)
  const { queue, id } = name
  const job = detail.data.value
  const error = detail.error.value
  const crumbs = [
    { text: 'Overview', href: './' },
    { text: queue, href: at`queues/${queue}` },
    name.part === 'morgue'
      ? { text: 'morgue', href: at`queues/${queue}/morgue` }
      : { text: 'jobs', href: at`queues/${queue}/jobs` },
  ]
  return (
    <>
      <PageHead
        title={id}
        crumbs={crumbs}
        badges={job && <JobBadges job={job} />}
        actions={job && mayChange.value && !isGone.value && <JobActions job={job} name={name} done={detail.refresh} />}
      >
        <Name text={id} most={64} isId canCopy />
      </PageHead>
      <div class="sr-only" aria-live="polite">
        {job !== undefined && endedHere.value && `The job has ended: ${job.state}.`}
      </div>
      {job === undefined && isGone.value && <NotKept name={name} onLook={detail.refresh} />}
      {job === undefined && !isGone.value && error !== undefined && (
        <TableNotice error={error} onRetry={() => void detail.refresh()} />
      )}
      {job === undefined && error === undefined && <WaitingRows />}
      {job !== undefined && isGone.value && (
        <p class="mb-4 rounded-md bg-warn-wash px-4 py-2.5 text-warn" role="status">
          It has ended or was removed, and nothing is kept of it any more. This is how it was seen last.
        </p>
      )}
      {job !== undefined && (
        <KnownJob job={job} name={name} log={log.value} isGone={isGone.value} done={detail.refresh} />
      )}
    </>
  )
}

function JobBadges({ job: { state, suspect } }: { readonly job: JobDetail }) {
  return (
    <>
      <StateBadge state={state} />
      {suspect && (
        <Badge tone="warn" sign="!" hint="Its worker died with it in hand: it must run alone in a process">
          suspect
        </Badge>
      )}
    </>
  )
}

/** Few are opened. */
const RescheduleDialog = latePart(async () => (await import('./reschedule-dialog.js')).RescheduleDialog)
const AgainDialog = latePart(async () => (await import('./input-dialogs.js')).AgainDialog)
const ReviveDialog = latePart(async () => (await import('./input-dialogs.js')).ReviveDialog)

/** Few jobs have one. */
const Graph = latePart(async () => (await import('./join-graph.js')).JoinGraphPanel)

/** Whether it waits or waited for other jobs, or they for it. */
function isJoined({ join, joins = [] }: JobDetail): boolean {
  return join !== undefined || joins.length > 0
}

interface KnownProps {
  readonly job: JobDetail
  readonly name: JobName
  readonly log: string
  readonly isGone: boolean
  readonly done: () => unknown
}

function KnownJob({ job, name, log, isGone, done }: KnownProps) {
  const isLive = !hasEnded(job.state) && !isGone
  return (
    <div class="grid gap-4">
      {!isGone && <WaitReasons title="Waits because" waits={job.waits} />}
      <JobTimeline job={job} />
      {!isGone && isJoined(job) && <Graph name={{ queue: name.queue, id: name.id }} state={job.state} />}
      <div class="grid gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
        <div class="grid min-w-0 content-start gap-4">
          {job.progress !== undefined && <ProgressBar progress={job.progress} isLive={isLive} />}
          <AttemptPanel job={job} />
          <PayloadPanel job={job} />
          <StepPanel job={job} name={name} isGone={isGone} done={done} />
          <LogPanel text={log} isLive={isLive} id={job.id} />
        </div>
        <div class="grid min-w-0 content-start gap-4">
          <JoinPanel job={job} />
          <SignalPanel job={job} name={name} isGone={isGone} done={done} />
          <FactList job={job} />
          <RelativesPanel job={job} />
          <FieldEditor job={job} name={name} isGone={isGone} onChange={done} />
        </div>
      </div>
    </div>
  )
}

interface ActionProps {
  readonly job: JobDetail
  readonly name: JobName
  readonly done: () => unknown
}

function JobActions({ job, name, done }: ActionProps) {
  const [dialog, setDialog] = useState<JobDialog>()
  const close = () => setDialog(undefined)
  const isWhole = isShownWhole(job, redacts.value)
  const [first, ...others] = actsOf({ job, name, open: setDialog, done })
  return (
    <>
      {first !== undefined && (
        <Button kind={first.isDangerous ? 'danger' : 'main'} onPress={first.onPick}>
          {first.text}
        </Button>
      )}
      {others.length > 0 && <Menu label="More actions" items={others} />}
      {dialog === 'again' && !isOrdered(job) && <AgainDialog job={job} isWhole={isWhole} onClose={close} />}
      {dialog === 'again' && isOrdered(job) && (
        <EnqueueDialog
          queue={job.queue}
          isOrdered
          onClose={close}
          onDone={done}
          form={againForm(job)}
          meta={againMeta(job)}
        />
      )}
      {dialog === 'reschedule' && <RescheduleDialog job={job} name={name} onClose={close} done={done} />}
      {dialog === 'revive' && <ReviveDialog job={job} isWhole={isWhole} onClose={close} done={done} />}
      {(dialog === 'cancel' || dialog === 'fail') && (
        <EndDialog how={dialog} job={job} name={name} onClose={close} done={done} />
      )}
    </>
  )
}

interface ProgressProps {
  readonly progress: { readonly fraction: number; readonly note?: string }
  readonly isLive: boolean
}

/** The reported progress of a job, with its note. */
function ProgressBar({ progress: { fraction, note }, isLive }: ProgressProps) {
  const share = Math.min(1, Math.max(0, fraction))
  const percent = `${Math.round(share * 100)} %`
  return (
    <section class="panel p-4" aria-label="Progress">
      <div class="mb-1.5 flex justify-between gap-3">
        <span class="min-w-0 wrap-anywhere">{note === undefined ? 'Progress' : safeText(note)}</span>
        <span class="font-medium whitespace-nowrap">{percent}</span>
      </div>
      <div
        role="progressbar"
        aria-label="Progress"
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
        class="h-2 overflow-hidden rounded-full bg-sunk ring-1 ring-line ring-inset"
      >
        <div
          class={`meter-fill h-full origin-left transition-transform ${isLive ? 'bg-accent' : 'bg-edge'}`}
          style={{ transform: `scaleX(${share})` }}
        />
      </div>
    </section>
  )
}

/** Where a job runs or ran, how long its lease lasts, and the options of its enqueue. */
function FactList({ job }: { readonly job: JobDetail }) {
  const { queue, task, priority, group, host, pid, worker, state, leaseMs, createdAt, updatedAt, expiresAt, held } = job
  const isRunning = state === 'running'
  const ran = isRunning ? 'runs' : 'ran last'
  return (
    <Panel title="Facts">
      <dl class="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
        <Fact name="Queue">
          <a class="link" href={at`queues/${queue}`}>
            <Name text={queue} />
          </a>
        </Fact>
        <Fact name="Task">
          <Name text={task} most={60} />
        </Fact>
        <Fact name="Priority">{priority}</Fact>
        {group !== undefined && (
          <Fact name="Group">
            <Name text={group} canCopy />
          </Fact>
        )}
        {held !== undefined && (
          <Fact name="Held">{held.until === undefined ? 'its group is paused' : <Moment at={held.until} />}</Fact>
        )}
        <Fact name="Enqueued">
          <Moment at={createdAt} />
        </Fact>
        <Fact name="Changed">
          <Moment at={updatedAt} />
        </Fact>
        {expiresAt !== undefined && (
          <Fact name="Expires">
            <Moment at={expiresAt} />
          </Fact>
        )}
        {worker !== undefined && (
          <Fact name={`Worker it ${ran} in`}>
            <Name text={worker} most={34} isId canCopy />
          </Fact>
        )}
        {host !== undefined && (
          <Fact name={`Where it ${ran}`}>
            <Name text={host} />
            {pid !== undefined && `, process ${pid}`}
          </Fact>
        )}
        {isRunning && leaseMs !== undefined && (
          <Fact name="Lease">
            {durationWords(leaseMs)}, renewed while its worker lives; another worker takes it over when that stops
          </Fact>
        )}
      </dl>
    </Panel>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt class="text-muted">{name}</dt>
      <dd class="min-w-0 wrap-anywhere">{children}</dd>
    </>
  )
}

/**
 * The job that enqueued this one, the job that this one repeats, and the jobs that this one enqueued, with their present
 * states.
 */
function RelativesPanel({ job }: { readonly job: JobDetail }) {
  const { parent, repeatOf, children = [], childCalls = 0, state } = job
  if (parent === undefined && repeatOf === undefined && childCalls === 0) return null
  return (
    <Panel title="Parent and children">
      {parent !== undefined && (
        <div class="grid gap-1">
          <span class="text-sm text-muted">Enqueued by</span>
          <RelativeLine relative={parent} />
        </div>
      )}
      {repeatOf !== undefined && (
        <div class="grid gap-1">
          <span class="text-sm text-muted">Enqueued again, like</span>
          <RelativeLine relative={repeatOf} />
        </div>
      )}
      {childCalls > 0 && (
        <div class="grid gap-1">
          <span class="text-sm text-muted">
            Has enqueued, by {countOf(childCalls, 'call')}
            {children.length > 1 && `: ${stateCounts(children)}`}
          </span>
          {children.map((child) => (
            <RelativeLine key={`${child.queue}/${child.id}`} relative={child} />
          ))}
          {children.length < childCalls && (
            <span class="text-sm text-muted">
              Of {countOf(childCalls - children.length, 'call')} the jobs are not found: gone by now, enqueued many at
              once, or under ids of their own.
            </span>
          )}
          {!hasEnded(state) && <span class="text-xs text-muted">Noted about a second after each call.</span>}
        </div>
      )}
    </Panel>
  )
}

/** `3 completed, 1 running`, in the order in which the states first stand there. */
function stateCounts(relatives: readonly Relative[]): string {
  const counts = new Map<string, number>()
  for (const { state = 'not kept' } of relatives) counts.set(state, (counts.get(state) ?? 0) + 1)
  return [...counts].map(([state, count]) => `${exactCount(count)} ${state}`).join(', ')
}

function RelativeLine({ relative: { queue, id, task, state } }: { readonly relative: Relative }) {
  return (
    <div class="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-0.5 text-sm">
      <a class="link min-w-0" href={jobAddress({ queue, id })}>
        <Name text={id} most={28} isId />
      </a>
      <span class="text-muted">
        <Name text={task} /> in <Name text={queue} />
      </span>
      {state === undefined ? <span class="text-muted">nothing is kept of it</span> : <StateBadge state={state} />}
    </div>
  )
}

const whyWords =
  'It ended and its result is not kept, or no longer: the retention of the queue says how many results it keeps, and for how long. Or it was deleted, or never enqueued.'

interface NotKeptProps {
  readonly name: JobName
  readonly onLook: () => unknown
}

/** The page of a job that is not kept: why that is no fault, and where to look instead. */
function NotKept({ name: { queue, id, part }, onLook }: NotKeptProps) {
  return (
    <div class="panel grid max-w-prose gap-3 p-5">
      <h2 class="text-lg font-semibold">
        {part === 'morgue' ? 'No such job is in the morgue' : 'Nothing is kept of this job'}
      </h2>
      <p class="wrap-anywhere text-muted">
        {part === 'morgue' ? 'It was revived or deleted, or never died.' : whyWords} It was looked for in the queue{' '}
        <Name text={queue} />.
      </p>
      <ul class="grid list-disc gap-1 ps-5">
        <li>
          <a class="link" href={`search${queryText({ q: id })}`}>
            Look for this id in all queues
          </a>
        </li>
        <li>
          <a class="link" href={at`queues/${queue}/jobs`}>
            Jobs of this queue
          </a>
        </li>
        <li>
          <a class="link" href={at`queues/${queue}/morgue`}>
            Its morgue
          </a>
        </li>
      </ul>
      <div>
        <Button onPress={onLook}>Look again</Button>
      </div>
    </div>
  )
}
