/** The search page: jobs of all queues by their id or by their task, and queues by their name. */

import { useEffect } from 'preact/hooks'
import type { JobRow } from '../api/answers.js'
import { get } from '../api/api-client.js'
import { ApiError } from '../api/api-error.js'
import { at, jobPage } from '../api/api-path.js'
import { DataTable } from '../parts/data-table.js'
import { Name } from '../parts/name-text.js'
import { PageHead, Section } from '../parts/page-head.js'
import { Button } from '../parts/press-button.js'
import { overview, queueNames } from '../state/live-overview.js'
import { go, query, setQuery } from '../state/page-address.js'
import { useResource } from '../state/resource.js'
import { foundColumns, foundKey, nameOf } from './jobs/job-columns.js'

interface Found {
  readonly items: readonly JobRow[]
  /** Not all jobs were looked at. */
  readonly more: boolean
}

interface FoundBoth {
  readonly asked: string
  readonly byId: Found
  readonly byTask: Found
}

const nothing: Found = { items: [], more: false }
const mostQueues = 20

export function SearchPage() {
  const asked = query.value.get('q')?.trim() ?? ''
  const found = useResource<FoundBoth>((signal) => search(asked, signal), [asked])
  useEffect(() => {
    // Only the names of the queues are searched.
    if (overview.data.value === undefined) void overview.refresh()
  }, [])
  const data = found.data.value?.asked === asked ? found.data.value : undefined
  const [only, ...others] = data?.byId.items ?? []
  const isExact = only !== undefined && others.length === 0 && data?.byTask.items.length === 0
  useEffect(() => {
    // The back button leads to where the search began.
    if (isExact) go(jobPage(nameOf(only)), { replace: true })
  }, [isExact])
  return (
    <>
      <PageHead title="Search" />
      <SearchForm asked={asked} />
      {asked === '' ? (
        <p class="text-muted">
          A job is found by its whole id in every queue, or by its task among the first 200 jobs of each queue.
        </p>
      ) : (
        <>
          <QueuesFound asked={asked} />
          <JobsFound
            title="Jobs with this id"
            rows={data?.byId.items}
            error={found.error.value}
            onRetry={found.refresh}
            note={data?.byId.more === true && 'Not every queue was looked at: there are too many.'}
            empty="No queue keeps a job with exactly this id."
          />
          <JobsFound
            title="Jobs of this task"
            rows={data?.byTask.items}
            error={found.error.value}
            onRetry={found.refresh}
            note={
              data?.byTask.more === true &&
              'Not everything was looked at: only the first 200 jobs of each queue, and 200 jobs in all. The list of a queue shows more.'
            }
            empty="No job of exactly this task is among the jobs that were looked at."
          />
        </>
      )}
    </>
  )
}

function SearchForm({ asked }: { readonly asked: string }) {
  return (
    <search class="mb-4">
      <form
        class="flex max-w-xl gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          setQuery({ q: String(new FormData(event.currentTarget).get('q')).trim() }, {})
        }}
      >
        <input
          key={asked}
          type="search"
          name="q"
          class="field"
          placeholder="Job id, task or queue"
          aria-label="Job id, task or queue"
          defaultValue={asked}
          maxLength={256}
        />
        <Button type="submit" kind="main">
          Search
        </Button>
      </form>
    </search>
  )
}

function QueuesFound({ asked }: { readonly asked: string }) {
  const wanted = asked.toLowerCase()
  const names = queueNames.value.filter((name) => name.toLowerCase().includes(wanted))
  if (names.length === 0) return null
  return (
    <Section title="Queues">
      <ul class="flex flex-wrap gap-x-4 gap-y-1">
        {names.slice(0, mostQueues).map((name) => (
          <li key={name}>
            <a class="link" href={at`queues/${name}`}>
              <Name text={name} />
            </a>
          </li>
        ))}
        {names.length > mostQueues && <li class="text-muted">and {names.length - mostQueues} more</li>}
      </ul>
    </Section>
  )
}

interface FoundProps {
  readonly title: string
  readonly rows: readonly JobRow[] | undefined
  readonly error: Error | undefined
  readonly onRetry: () => void
  readonly note: string | false
  readonly empty: string
}

function JobsFound({ title, rows, error, onRetry, note, empty }: FoundProps) {
  return (
    <Section title={title}>
      <DataTable
        label={title}
        columns={foundColumns}
        rows={rows}
        keyOf={foundKey}
        error={error}
        onRetry={onRetry}
        empty={<p>{empty}</p>}
      />
      {note && <p class="mt-2 text-sm text-muted">{note}</p>}
    </Section>
  )
}

/** A text that cannot be an id or a task finds nothing; other errors are shown. */
async function search(asked: string, signal: AbortSignal): Promise<FoundBoth> {
  if (asked === '') return { asked, byId: nothing, byTask: nothing }
  const [byId, byTask] = await Promise.all([foundBy({ id: asked }, signal), foundBy({ task: asked }, signal)])
  return { asked, byId, byTask }
}

async function foundBy(sought: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Found> {
  try {
    return await get<Found>('search', { query: sought, signal })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'argument-invalid') return nothing
    throw error
  }
}
