/** The endpoints of throttles, and of pauses and holds: what keeps a queue or one of its groups from starting jobs. */

import * as v from 'valibot'
import { lookInto } from '../../client/admin/queue-looks.js'
import type { ThrottleChange } from '../../client/admin/throttle-admin.js'
import { recordsOf } from '../../client/store-facets.js'
import { groupRules, type ThrottleRule } from '../../core/queue/throttle.js'
import { throttleSchema } from '../../core/queue/throttle-options.js'
import { defined } from '../../core/values/defined.js'
import { exactly } from '../../core/values/option-check.js'
import type { Mill } from '../../mill/mill.js'
import type { Store } from '../../stores/contract/store.js'
import type { ThrottleState } from '../../stores/contract/throttles.js'
import { namedQueues, unlessDamaged } from '../state/queue-rows.js'
import { endpoint } from './endpoint.js'
import { changed, group, page, wholeText } from './shapes.js'

/** The most holds of a queue in a list of all queues. */
const mostOfQueue = 20
/** The most ready jobs, and groups of them, that are looked at to tell which wait for a throttle. */
const mostJobs = 200
const mostGroups = 20

const ofGroup = exactly({ group: v.exactOptional(group) })

export const throttleEndpoints = [
  endpoint({
    method: 'GET',
    path: '/throttles',
    summary: 'The throttles, each with the queues that share it and the starts in its windows',
    answer: page,
    run: async ({ window: { mill } }) => {
      const scopes = new Map<string, string[]>()
      for (const { name, stored } of await namedQueues(mill)) {
        const scope = stored?.throttle?.scope
        if (scope !== undefined) scopes.set(scope, [...(scopes.get(scope) ?? []), name])
      }
      const items = await Promise.all([...scopes].map(([scope, queues]) => throttleOf(mill, scope, queues)))
      return { items: items.filter((item) => item !== undefined) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/throttle',
    summary:
      'Its throttle: the starts in the window of each rule, of one group if it counts by group; null without one',
    query: { group: v.exactOptional(group) },
    run: async ({ window, params: { queue = '' }, query }) =>
      (await (await window.known(queue)).throttle.get(query.group)) ?? null,
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/throttle/groups',
    summary: 'The groups of its first 200 ready jobs, at most 20, the one that waits longest for the throttle first',
    answer: page,
    run: async ({ window, params: { queue = '' } }) => {
      await window.known(queue)
      return lookInto(true, async () => waitingGroups(await window.mill.adminParts.look(), queue), {
        items: [],
        more: false,
      })
    },
  }),
  endpoint({
    method: 'PUT',
    path: '/queues/:queue/throttle',
    summary:
      "Change its limits, for all queues that share its throttle, or those of `group`; `'default'` ends the latter",
    action: 'queue.throttle',
    body: exactly({
      rules: v.union([v.pipe(throttleSchema, v.metadata({ json: throttleJson() })), v.literal('default')]),
      group: v.exactOptional(group),
    }),
    answer: changed,
    run: async ({ window, params: { queue = '' }, body: { rules, group } }) => {
      const { throttle } = await window.known(queue)
      if (group === undefined) await throttle.set(rules as ThrottleChange | ThrottleChange[])
      else await throttle.set(rules as ThrottleChange | ThrottleChange[] | 'default', { group })
      return { changed: 1, more: false }
    },
  }),
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
    run: async ({ window }) => {
      const { throttles } = await window.mill.adminParts.look()
      if (throttles === undefined) return { items: [] }
      const stored = (await namedQueues(window.mill)).filter(({ stored }) => stored !== undefined)
      const items = await Promise.all(
        stored.map(async ({ name }) => {
          const holds = await unlessDamaged(window.queue(name).throttle.holds({ limit: mostOfQueue }))
          return holds === undefined || holds.total === 0 ? [] : [{ queue: name, ...holds }]
        }),
      )
      return { items: items.flat() }
    },
  }),
]

/** A throttle, with the queues that share it; undefined if all of them are damaged. */
async function throttleOf(mill: Mill, scope: string, queues: readonly string[]) {
  const { throttles } = await mill.adminParts.look()
  let status: ThrottleState | undefined
  for (const queue of queues) status ??= throttles && (await unlessDamaged(throttles.state(queue)))
  if (status === undefined) return undefined
  const { throttle, hits, forMs, quietForMs, groups } = status
  return {
    scope,
    by: throttle.by,
    queues,
    rules: throttle.rules,
    ...defined({ eachGroup: throttle.eachGroup }),
    hits,
    forMs,
    quietForMs,
    ...defined({ groups }),
  }
}

function throttleJson() {
  const rule = {
    type: 'object',
    required: ['limit', 'window'],
    additionalProperties: false,
    properties: {
      limit: { type: 'integer', minimum: 1, maximum: 1_000_000 },
      window: {
        oneOf: [
          { type: 'string', examples: ['1m'] },
          { type: 'integer', minimum: 1 },
        ],
      },
      moderate: { type: 'boolean' },
      elastic: { type: 'object', required: ['buffer'], properties: { buffer: { type: 'integer', minimum: 0 } } },
      by: { enum: ['queue', 'group'] },
    },
  }
  return { oneOf: [rule, { type: 'array', items: rule, minItems: 1 }] }
}

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

interface WaitingGroup {
  /** `''`: the jobs without a group. */
  readonly group: string
  /** How many of the jobs that were looked at are its. */
  readonly ready: number
  /** Ms until the throttle permits its next start; 0: at once. */
  readonly forMs: number
  readonly rules: readonly ThrottleRule[]
  /** For each rule, the starts in its window that ends now. */
  readonly hits: readonly number[]
}

interface WaitingGroups {
  readonly items: readonly WaitingGroup[]
  /** Not all ready jobs, or not all of their groups, were looked at. */
  readonly more: boolean
}

/**
 * The groups whose jobs wait for the throttle: those of the first ready jobs, the longest wait first. Nothing for a queue
 * whose throttle has no rules for groups. At most 22 calls of the store.
 */
async function waitingGroups(store: Store, queue: string): Promise<WaitingGroups> {
  const { throttles } = store
  const throttle = throttles && (await throttles.state(queue))?.throttle
  if (throttles === undefined || throttle === undefined || groupRules(throttle) === undefined)
    return { items: [], more: false }
  const { jobs, cursor } = await recordsOf(store).list(queue, { state: 'ready', by: 'time', limit: mostJobs })
  const counts = new Map<string, number>()
  for (const { group = '' } of jobs) counts.set(group, (counts.get(group) ?? 0) + 1)
  const asked = [...counts].sort(([, a], [, b]) => b - a).slice(0, mostGroups)
  const items = await Promise.all(
    asked.map(async ([group, ready]): Promise<WaitingGroup[]> => {
      const state = await throttles.state(queue, group)
      if (state === undefined) return []
      const rules = state.rate ?? groupRules(state.throttle) ?? []
      const hits = state.throttle.by === 'group' ? state.hits : (state.groupHits ?? [])
      return [{ group, ready, forMs: state.forMs, rules, hits }]
    }),
  )
  return {
    items: items.flat().sort((a, b) => b.forMs - a.forMs || b.ready - a.ready),
    more: cursor !== undefined || counts.size > mostGroups,
  }
}
