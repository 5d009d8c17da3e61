/** The endpoints over all queues: the overview, its sums in Lowkiq's shape, the search, and the overview as it changes. */

import * as v from 'valibot'
import { WebRefusal } from '../refusal.js'
import { jobsById, jobsOfTask } from '../state/job-search.js'
import { lowkiqStats, overviewOf } from '../state/overview.js'
import { queueRows } from '../state/queue-rows.js'
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
