/** The fact list: where a job runs or ran, how long its lease lasts, and the options of its enqueue. */

import type { ComponentChildren } from 'preact'
import { at } from '../../api/api-path.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { durationWords } from '../../words/duration-words.js'
import type { JobDetail } from './job-detail.js'
import { Panel } from './titled-panel.js'

export function FactList({ job }: { readonly job: JobDetail }) {
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
