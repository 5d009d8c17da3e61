/** The search page: jobs of all queues by their id, or by a text that they have, and queues by their name. */

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

interface FoundFor extends Found {
  readonly asked: string
}

const nothing: Found = { items: [], more: false }
const mostQueues = 20

export function SearchPage() {
  const asked = query.value.get('q')?.trim() ?? ''
  const byId = useResource<FoundFor>((signal) => search('id', asked, signal), [asked])
  const byText = useResource<FoundFor>((signal) => search('text', asked, signal), [asked])
  useEffect(() => {
    // Only the names of the queues are searched.
    if (overview.data.value === undefined) void overview.refresh()
  }, [])
  const foundById = byId.data.value?.asked === asked ? byId.data.value : undefined
  const foundByText = byText.data.value?.asked === asked ? byText.data.value : undefined
  const [only, ...others] = foundById?.items ?? []
  const isExact = only !== undefined && others.length === 0
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
          A whole id leads to its job. Other text is looked for, for about a second, in the ids, tasks, groups, fields
          and inputs of the jobs of all queues. A field is found as order=4711.
        </p>
      ) : (
        <>
          <QueuesFound asked={asked} />
          {others.length > 0 && (
            <JobsFound
              title="Jobs with this id"
              rows={foundById?.items}
              error={undefined}
              onRetry={byId.refresh}
              empty=""
            />
          )}
          <JobsFound
            title="Jobs with this text"
            rows={foundByText?.items}
            error={byId.error.value ?? byText.error.value}
            onRetry={() => Promise.all([byId.refresh(), byText.refresh()])}
            note={
              foundByText?.more === true &&
              'Not every job was looked at: a search ends after about a second, or with 200 jobs. The list of a queue goes on, with the same text as its filter.'
            }
            empty="No job that was looked at has this text in its id, task, group, fields or input."
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
          placeholder="Job id, or text of a job"
          aria-label="Job id, or text of a job"
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
  readonly note?: string | false
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

/** A text that cannot be an id finds nothing by it; other errors are shown. */
async function search(by: 'id' | 'text', asked: string, signal: AbortSignal): Promise<FoundFor> {
  if (asked === '') return { asked, ...nothing }
  try {
    return { asked, ...(await get<Found>('search', { query: { [by]: asked }, signal })) }
  } catch (error) {
    if (error instanceof ApiError && error.code === 'argument-invalid') return { asked, ...nothing }
    throw error
  }
}
