/** The workers page: every worker process, its state, and the jobs that it holds. */

import type { ListPage, WorkerRow } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { PageHead } from '../../frame/page-head.js'
import { DataTable } from '../../parts/data-table.js'
import { Select } from '../../parts/form-field.js'
import { SearchField } from '../../parts/search-field.js'
import { Stat, Stats } from '../../parts/stat-tile.js'
import { query, setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { bytesWords, countWords } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { workerColumns } from './worker-columns.js'
import { WorkerDialog } from './worker-dialog.js'

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
        hint="What the processes take, as they say themselves"
      />
      <Stat
        label="Slowest event loop"
        value={told((all) => durationWords(Math.max(0, ...all.map(({ loopDelayMs = 0 }) => loopDelayMs))))}
        hint="How late timers were since the last beat, 99 of 100 times at most"
      />
    </Stats>
  )
}
