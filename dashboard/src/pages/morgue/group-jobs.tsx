/** The group jobs: the dead jobs of one error, some at a time; each is looked up by its id. */

import { useEffect } from 'preact/hooks'
import type { JobRow } from '../../api/answers.js'
import { get } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { jobAddress } from '../../api/job-address.js'
import { Button } from '../../parts/press-button.js'
import { query, setQuery } from '../../state/page-address.js'
import { useResource } from '../../state/resource.js'
import { exactCount } from '../../words/count-words.js'
import type { DeadGroup } from './dead-group.js'
import { DeadJobTable } from './dead-job-table.js'

const perPage = 25

interface GroupJobsProps {
  readonly queue: string
  readonly group: DeadGroup
  /** Called after jobs were revived or deleted. */
  readonly done: () => unknown
}

export function GroupJobs({ queue, group: { ids, count }, done }: GroupJobsProps) {
  const from = Math.max(0, Math.floor(Number(query.value.get('from')) || 0))
  const asked = ids.slice(from, from + perPage)
  const jobs = useResource<readonly JobRow[]>(
    async (signal) => {
      const found = await Promise.all(asked.map((id) => deadJob(queue, id, signal)))
      return found.filter((job) => job !== undefined)
    },
    [queue, asked.join('\0')],
  )
  const turn = (to: number) => setQuery({ from: to === 0 ? undefined : String(to) })
  useEffect(() => {
    // The rest of a group may have gone since this page was opened.
    if (from > 0 && from >= ids.length) turn(0)
  }, [from, ids.length])
  return (
    <>
      <DeadJobTable
        queue={queue}
        rows={jobs.data.value}
        error={jobs.error.value}
        onRetry={jobs.refresh}
        done={done}
        pageKey={String(from)}
        empty={<p>None of these lies in the morgue any more.</p>}
      />
      <nav class="mt-3 flex min-h-8 flex-wrap items-center gap-2" aria-label="Pages">
        <Button isDisabled={from === 0} onPress={() => turn(Math.max(0, from - perPage))}>
          Previous
        </Button>
        <Button isDisabled={from + perPage >= ids.length} onPress={() => turn(from + perPage)}>
          Next
        </Button>
        <span class="ms-auto text-sm text-muted">
          {exactCount(Math.min(from + 1, ids.length))}–{exactCount(Math.min(from + perPage, ids.length))} of{' '}
          {exactCount(count)}
        </span>
      </nav>
    </>
  )
}

/** Undefined if it was revived or deleted meanwhile. */
async function deadJob(queue: string, id: string, signal: AbortSignal): Promise<JobRow | undefined> {
  try {
    return await get<JobRow>(jobAddress({ queue, id, part: 'morgue' }), { signal })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'job-unknown') return undefined
    throw error
  }
}
