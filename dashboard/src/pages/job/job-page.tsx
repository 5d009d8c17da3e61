/** The job page: everything that is known about one job, live, and its actions. */

import { useState } from 'preact/hooks'
import { at } from '../../api/api-path.js'
import { type JobName, jobAddress, jobNamed } from '../../api/job-address.js'
import { mayChange } from '../../api/session-state.js'
import { PageHead } from '../../frame/page-head.js'
import { Name } from '../../parts/name-text.js'
import { Menu } from '../../parts/popover-menu.js'
import { Button } from '../../parts/press-button.js'
import { Badge, StateBadge } from '../../parts/state-badge.js'
import { TableNotice, WaitingRows } from '../../parts/table-notice.js'
import { query } from '../../state/page-address.js'
import { EnqueueDialog } from '../queue/enqueue-dialog.js'
import { againForm, againMeta } from './again-form.js'
import { AttemptPanel } from './attempt-panel.js'
import { EndDialog } from './end-dialog.js'
import { FactList } from './fact-list.js'
import { FieldEditor } from './field-editor.js'
import { actsOf, type JobDialog } from './job-acts.js'
import { hasEnded, isOrdered, type JobDetail } from './job-detail.js'
import { JobTimeline } from './job-timeline.js'
import { useLiveJob } from './live-job.js'
import { LogPanel } from './log-panel.js'
import { NotKept } from './not-kept.js'
import { PayloadPanel } from './payload-panel.js'
import { ProgressBar } from './progress-bar.js'
import { RelativesPanel } from './relatives-panel.js'

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
        <Badge tone="warn" sign="!" hint="Its worker died with it in hand: it runs in a process of its own">
          suspect
        </Badge>
      )}
    </>
  )
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
      <JobTimeline job={job} />
      <div class="grid gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
        <div class="grid min-w-0 content-start gap-4">
          {job.progress !== undefined && <ProgressBar progress={job.progress} isLive={isLive} />}
          <AttemptPanel job={job} />
          <PayloadPanel job={job} />
          <LogPanel text={log} isLive={isLive} id={job.id} />
        </div>
        <div class="grid min-w-0 content-start gap-4">
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
  const [first, ...others] = actsOf({ job, name, open: setDialog, done })
  return (
    <>
      {first !== undefined && (
        <Button kind={first.isDangerous ? 'danger' : 'main'} onPress={first.onPick}>
          {first.text}
        </Button>
      )}
      {others.length > 0 && <Menu label="More actions" items={others} />}
      {dialog === 'again' && (
        <EnqueueDialog
          queue={job.queue}
          isOrdered={isOrdered(job)}
          onClose={close}
          onDone={done}
          form={againForm(job)}
          meta={againMeta(job)}
        />
      )}
      {(dialog === 'cancel' || dialog === 'fail') && (
        <EndDialog how={dialog} job={job} name={name} onClose={close} done={done} />
      )}
    </>
  )
}
