/** The endpoints of schedules, and of the throttles of all queues by their scope. */

import * as v from 'valibot'
import type { ScheduleRecord } from '../../client/schedules/schedule-view.js'
import type { Mill } from '../../mill/mill.js'
import { WebRefusal } from '../refusal.js'
import { namedQueues } from '../state/queue-rows.js'
import { endpoint } from './endpoint.js'
import { cursor, limit, nothing, page, wholeText } from './shapes.js'

/** The shown part of a schedule. */
function shown({ input, meta, ...schedule }: ScheduleRecord, isHidden: boolean) {
  return isHidden ? { ...schedule, payloadsHidden: true } : { ...schedule, input, meta }
}

/** Throws a refusal if there is no such schedule. */
async function found({ schedules }: Mill, name: string): Promise<ScheduleRecord> {
  const schedule = await schedules.get(name)
  if (schedule === undefined)
    throw new WebRefusal('not-found', `there is no schedule '${name}': \`GET schedules\` lists them.`)
  return schedule
}

function actEndpoint(verb: 'run' | 'pause' | 'resume', summary: string) {
  return endpoint({
    method: 'POST',
    path: `/schedules/:name/${verb}`,
    summary,
    action: `schedule.${verb}`,
    body: nothing,
    answer: v.looseObject({ changed: v.number(), more: v.boolean() }),
    run: async ({ window: { mill }, params: { name = '' } }) => {
      await found(mill, name)
      if (verb !== 'run') await mill.schedules[verb](name)
      const job = verb === 'run' ? await mill.schedules.runNow(name) : undefined
      return { changed: 1, more: false, ...(job && { job: { queue: job.queue, id: job.id, outcome: job.outcome } }) }
    },
  })
}

/** A throttle, with the queues that share it. */
async function throttleOf(mill: Mill, scope: string, queues: readonly string[]) {
  const status = await mill.adminParts.connect().then(({ throttles }) => throttles?.state(queues[0]!))
  if (status === undefined) return undefined
  const { throttle, hits, forMs, quietForMs, groups } = status
  return {
    scope,
    by: throttle.by,
    queues,
    rules: throttle.rules,
    hits,
    forMs,
    quietForMs,
    ...(groups !== undefined && { groups }),
  }
}

export const scheduleEndpoints = [
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
    path: '/schedules',
    summary: 'The schedules by name, page by page',
    query: { cursor, limit },
    answer: page,
    run: async ({ window: { mill, options }, query }) => {
      const { schedules, cursor: next } = await mill.schedules.list(query)
      const items = schedules.map((schedule) => shown(schedule, options.hidePayloads))
      return { items, ...(next !== undefined && { cursor: next }) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/schedules/:name',
    summary: 'A schedule',
    run: async ({ window: { mill, options }, params: { name = '' } }) =>
      shown(await found(mill, name), options.hidePayloads),
  }),
  endpoint({
    method: 'GET',
    path: '/schedules/:name/next',
    summary: 'Its next ticks, by default 10',
    query: { count: v.exactOptional(wholeText(1, 1_000)) },
    answer: v.object({ items: v.array(v.string()) }),
    run: async ({ window: { mill }, params: { name = '' }, query: { count = 10 } }) => {
      await found(mill, name)
      return { items: await mill.schedules.next(name, count) }
    },
  }),
  actEndpoint('run', 'Enqueue its job now; its next tick does not change'),
  actEndpoint('pause', 'Stop its ticks until it is resumed'),
  actEndpoint('resume', 'End a pause, from its next tick on'),
]
