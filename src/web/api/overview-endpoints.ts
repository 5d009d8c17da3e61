/** The endpoints over all queues: the overview, its sums in Lowkiq's shape, the search, and the overview as it changes. */

import * as v from 'valibot'
import type { JobRecord } from '../../core/job/job.js'
import { WebRefusal } from '../failure.js'
import type { MillWindow } from '../mill-window.js'
import { lowkiqStats, overviewOf } from '../state/overview.js'
import { namedQueues, queueRows } from '../state/queue-rows.js'
import { noSparks, sparksOfLast } from '../state/sparks.js'
import { endpoint } from './endpoint.js'
import { jobId, page, taskName, wholeText } from './shapes.js'

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
    summary: 'Jobs of all queues by id, or by task among the first 200 of each queue',
    query: { id: v.exactOptional(jobId), task: v.exactOptional(taskName) },
    answer: page,
    run: async ({ window, query: { id, task } }) => {
      if ((id === undefined) === (task === undefined))
        throw new WebRefusal('argument-invalid', 'a search is for either `id` or `task`.')
      const { items, more } = id !== undefined ? await jobsById(window, id) : await jobsOfTask(window, task!)
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
const queuesPerTrip = 50
const mostItems = 200
/** The jobs of each queue whose task is looked at. */
const jobsPerQueue = 200

/** For an ordered queue both the live job of the id and its entry in the morgue. */
async function jobsById(window: MillWindow, id: string): Promise<FoundJobs> {
  return search(window, async (name, kind) => {
    const { jobs, morgue } = window.queue(name)
    const live = await jobs.get(id)
    const dead = kind === 'ordered' && live?.state !== 'dead' ? await morgue.get(id) : undefined
    return { jobs: [live, dead].filter((job) => job !== undefined), more: false }
  })
}

/** Looks at the first 200 jobs of each queue. */
async function jobsOfTask(window: MillWindow, task: string): Promise<FoundJobs> {
  return search(window, async (name) => {
    const { jobs, cursor } = await window.queue(name).jobs.list({ limit: jobsPerQueue })
    return { jobs: jobs.filter(window.isOfTask(task)), more: cursor !== undefined }
  })
}

async function search(
  window: MillWindow,
  look: (queue: string, kind: 'plain' | 'ordered') => Promise<{ readonly jobs: JobRecord[]; readonly more: boolean }>,
): Promise<FoundJobs> {
  const queues = await namedQueues(window.mill)
  const items: JobRecord[] = []
  let more = queues.length > mostQueues
  for (let from = 0; from < Math.min(queues.length, mostQueues) && items.length < mostItems; from += queuesPerTrip) {
    const some = queues.slice(from, from + queuesPerTrip)
    const found = await Promise.all(some.map(({ name, kind }) => look(name, kind)))
    items.push(...found.flatMap(({ jobs }) => jobs))
    more ||= found.some((one) => one.more)
  }
  return { items: items.slice(0, mostItems), more: more || items.length > mostItems }
}
