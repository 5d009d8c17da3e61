/** The endpoints that stop a queue or one of its groups, show what is stopped, and let it go on. */

import * as v from 'valibot'
import { exactly } from '../../core/values/option-check.js'
import { namedQueues } from '../state/queue-rows.js'
import { endpoint } from './endpoint.js'
import { changed, group, page, wholeText } from './shapes.js'

/** The most holds of a queue in a list of all queues. */
const mostOfQueue = 20

const ofGroup = exactly({ group: v.exactOptional(group) })

function switchEndpoint(verb: 'pause' | 'resume', summary: string) {
  return endpoint({
    method: 'POST',
    path: `/queues/:queue/${verb}`,
    summary,
    action: `queue.${verb}`,
    body: ofGroup,
    answer: changed,
    run: async ({ window, params: { queue = '' }, body: { group } }) => {
      await (await window.known(queue))[verb](group === undefined ? undefined : { group })
      return { changed: 1, more: false }
    },
  })
}

export const holdEndpoints = [
  switchEndpoint('pause', 'Start no more jobs, or none of `group`; running jobs go on'),
  switchEndpoint('resume', 'End a pause and a drain, or the pause of `group`'),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/holds',
    summary: 'What keeps the queue, or groups of it, from starting jobs; without `until`: a group that is paused',
    query: { group: v.exactOptional(group), limit: v.exactOptional(wholeText(1, 1_000)) },
    run: async ({ window, params: { queue = '' }, query }) => (await window.known(queue)).throttle.holds(query),
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/release',
    summary: 'End the hold of `group`; without it that of the queue, and those of all its groups',
    action: 'queue.release',
    body: ofGroup,
    answer: changed,
    run: async ({ window, params: { queue = '' }, body: { group } }) => ({
      changed: await (await window.known(queue)).throttle.release(group),
      more: false,
    }),
  }),
  endpoint({
    method: 'GET',
    path: '/holds',
    summary: `The queues that are held, or that have held or paused groups, each with the first ${mostOfQueue} of these`,
    answer: page,
    run: async ({ window: { mill } }) => {
      const { throttles } = await mill.adminParts.look()
      if (throttles === undefined) return { items: [] }
      const stored = (await namedQueues(mill)).filter(({ stored }) => stored !== undefined)
      const items = await Promise.all(
        stored.map(async ({ name }) => ({
          queue: name,
          ...(await mill.queue(name).throttle.holds({ limit: mostOfQueue })),
        })),
      )
      return { items: items.filter(({ total }) => total > 0) }
    },
  }),
]
