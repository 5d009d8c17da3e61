/**
 * The relatives panel: the job that enqueued this one, and the jobs that this one enqueued, with their present states.
 */

import { jobAddress } from '../../api/job-address.js'
import { Name } from '../../parts/name-text.js'
import { StateBadge } from '../../parts/state-badge.js'
import { countOf } from '../../words/count-words.js'
import { hasEnded, type JobDetail, type Relative } from './job-detail.js'
import { Panel } from './titled-panel.js'

export function RelativesPanel({ job: { parent, children = [], childCalls = 0, state } }: { readonly job: JobDetail }) {
  if (parent === undefined && childCalls === 0) return null
  return (
    <Panel title="Parent and children">
      {parent !== undefined && (
        <div class="grid gap-1">
          <span class="text-sm text-muted">Enqueued by</span>
          <RelativeLine relative={parent} />
        </div>
      )}
      {childCalls > 0 && (
        <div class="grid gap-1">
          <span class="text-sm text-muted">Has enqueued, by {countOf(childCalls, 'call')}</span>
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
