/** The endpoints over all queues: the overview, its sums in Lowkiq's shape, the search, and the overview as it changes. */

import * as v from 'valibot'
import type { ListFilter } from '../../client/admin/job-filter.js'
import type { JobPage } from '../../client/admin/queue-looks.js'
import type { JobRecord } from '../../core/job/job.js'
import { systemClock } from '../../core/platform/clock.js'
import { defined } from '../../core/values/defined.js'
import { WebRefusal } from '../failure.js'
import { type MillWindow, searchEnd } from '../mill-window.js'
import { lowkiqStats, overviewOf } from '../state/overview.js'
import { namedQueues, queueRows } from '../state/queue-rows.js'
import { noSparks, sparksOfLast } from '../state/sparks.js'
import { endpoint } from './endpoint.js'
import { jobId, listFilter, page, taskName, wholeText } from './shapes.js'

/** How many minutes a sparkline shows. */
const defaultMinutes = 60

export const overviewEndpoints = [
  endpoint({
    method: 'GET',
    path: '/overview',
    summary: 'All queues with their counts and sparklines, the sums, and the workers',
    query: { minutes: v.exactOptional(wholeText(1, 1_440)) },
    run: ({ window, query: { minutes = defaultMinutes } }) => overviewOf(window.mill, sparksOfLast(minutes)),
  }),
  endpoint({
    method: 'GET',
    path: '/stats',
    summary: "Lengths and lags in the shape of Lowkiq's API; lags in seconds",
    run: async ({ window }) => lowkiqStats(await queueRows(window.mill, noSparks)),
  }),
  endpoint({
    method: 'GET',
    path: '/search',
    summary:
      'Jobs of all queues by id, or by task and a filter, at most 200; `more`: not all were looked at in about a second',
    query: { id: v.exactOptional(jobId), task: v.exactOptional(taskName), ...listFilter },
    answer: page,
    run: async ({ window, query: { id, ...sought } }) => {
      if ((id === undefined) === (Object.keys(sought).length === 0))
        throw new WebRefusal('argument-invalid', 'a search is for either `id`, or `task` and a filter such as `text`.')
      const { items, more } = id !== undefined ? await jobsById(window, id) : await jobsLike(window, sought)
      return { items: items.map((job) => window.shown(job)), more }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/events',
    summary: 'The overview each time it changes, at most once a second, as server-sent events `overview`',
    isStream: true,
    run: async ({ streams, asked }) => streams.overview(asked.request.signal),
  }),
]

interface FoundJobs {
  readonly items: readonly JobRecord[]
  /** Whether there may be others: not all jobs were looked at. */
  readonly more: boolean
}

const mostQueues = 500
const mostItems = 200
/** The queues that are asked at once for one job. */
const queuesPerTrip = 50
/**
 * The queues that are asked at once for a page, and the jobs of each before the next queue has its turn: 400 whole records,
 * which with inputs of 256,000 bytes take about 100 MB.
 */
const listsPerTrip = 8
const jobsPerTurn = 50

/** For an ordered queue both the live job of the id and its entry in the morgue. */
async function jobsById(window: MillWindow, id: string): Promise<FoundJobs> {
  return search(window, queuesPerTrip, async ({ name, kind }) => {
    const { jobs, morgue } = window.queue(name)
    const live = await jobs.get(id)
    const dead = kind === 'ordered' && live?.state !== 'dead' ? await morgue.get(id) : undefined
    return { jobs: [live, dead].filter((job) => job !== undefined) }
  })
}

/** Goes through the queues page by page, in turn, so that a long one hides none of the others. */
async function jobsLike(
  window: MillWindow,
  { task, ...filter }: ListFilter & { readonly task?: string },
): Promise<FoundJobs> {
  const isListed = task === undefined ? () => true : window.isOfTask(task)
  return search(window, listsPerTrip, async ({ name, cursor }) => {
    const page = await window.queue(name).jobs.list({ ...filter, limit: jobsPerTurn, ...defined({ cursor }) })
    return { ...page, jobs: page.jobs.filter(isListed) }
  })
}

interface SearchedQueue {
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  /** Where the search in it goes on. */
  readonly cursor?: string
}

async function search(
  window: MillWindow,
  perTrip: number,
  look: (queue: SearchedQueue) => Promise<JobPage>,
): Promise<FoundJobs> {
  const queues: readonly SearchedQueue[] = (await namedQueues(window.mill)).map(({ name, kind }) => ({ name, kind }))
  const untilAt = searchEnd()
  const items: JobRecord[] = []
  const left = queues.slice(0, mostQueues)
  while (left.length > 0 && items.length < mostItems && systemClock.mono() < untilAt) {
    const turn = left.splice(0, perTrip)
    for (const [i, { jobs, cursor }] of (await Promise.all(turn.map(look))).entries()) {
      items.push(...jobs)
      if (cursor !== undefined) left.push({ ...turn[i]!, cursor })
    }
  }
  const more = left.length > 0 || queues.length > mostQueues || items.length > mostItems
  return { items: items.slice(0, mostItems), more }
}
