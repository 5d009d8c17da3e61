/** The endpoints of a queue's morgue: dead jobs, one by one or by their error, revived or removed. */

import * as v from 'valibot'
import { WebRefusal } from '../refusal.js'
import { errorGroups } from '../state/error-groups.js'
import { endpoint } from './endpoint.js'
import { refuseUnconfirmed } from './queue-endpoints.js'
import { changed, cursor, deadChoice, limit, page, taskName } from './shapes.js'

function deadEndpoint(verb: 'revive' | 'delete', summary: string) {
  return endpoint({
    method: 'POST',
    path: `/queues/:queue/morgue/${verb}`,
    summary,
    action: `morgue.${verb}`,
    body: deadChoice,
    answer: changed,
    run: ({ window, params: { queue = '' }, body: { ids, confirm } }) => {
      if (ids === undefined) refuseUnconfirmed(queue, confirm)
      return window.act(queue, ({ morgue }) => morgue[verb](ids ?? 'all'))
    },
  })
}

export const morgueEndpoints = [
  endpoint({
    method: 'GET',
    path: '/queues/:queue/morgue',
    summary: 'Its dead jobs, page by page; with `task`, only jobs of that task on the page',
    query: { by: v.exactOptional(v.picklist(['id', 'time'])), task: v.exactOptional(taskName), cursor, limit },
    answer: page,
    run: async ({ window, params: { queue = '' }, query: { task, ...query } }) => {
      const { jobs, cursor: next } = await (await window.known(queue)).morgue.list(query)
      const listed = task === undefined ? jobs : jobs.filter(window.isOfTask(task))
      return { items: listed.map((job) => window.shown(job)), ...(next !== undefined && { cursor: next }) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/morgue/errors',
    summary: 'Its latest dead jobs by task and error',
    run: async ({ window, params: { queue = '' } }) => errorGroups(await window.known(queue)),
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/morgue/:id',
    summary: 'A dead job, also if a live job has its id',
    run: async ({ window, params: { queue = '', id = '' } }) => {
      const job = await (await window.known(queue)).morgue.get(id)
      if (job === undefined)
        throw new WebRefusal('job-unknown', `no dead job '${id}' lies in the morgue of queue '${queue}'.`)
      return window.shown(job)
    },
  }),
  deadEndpoint('revive', 'Bring dead jobs back into the queue, with all attempts'),
  deadEndpoint('delete', 'Remove dead jobs for good'),
]
