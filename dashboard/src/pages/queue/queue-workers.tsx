/** The queue workers: the worker processes that serve the queue. */

import type { WorkerRow } from '../../api/answers.js'
import { Section } from '../../frame/page-head.js'
import { type Column, DataTable } from '../../parts/data-table.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Badge } from '../../parts/state-badge.js'

const columns: readonly Column<WorkerRow>[] = [
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

export function QueueWorkers({ workers }: WorkersProps) {
  return (
    <Section title="Workers">
      <DataTable
        label="Workers of this queue"
        columns={columns}
        rows={workers}
        keyOf={({ id }) => id}
        empty={
          <>
            <p>Nobody serves this queue.</p>
            <p>Start workers with millrace work, or look at which queues theirs are.</p>
          </>
        }
      />
    </Section>
  )
}
