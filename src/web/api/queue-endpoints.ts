/** The endpoints of one queue: its state, and an operator's actions on the whole queue. */

import * as v from 'valibot'
import type { QueueAdmin } from '../../client/admin/queue-admin.js'
import { lookInto } from '../../client/admin/queue-looks.js'
import { defined } from '../../core/values/defined.js'
import { exactly, whole } from '../../core/values/option-check.js'
import { processIdentity } from '../../runtime/process/process-identity.js'
import { historySteps } from '../../stores/rules/history-slots.js'
import { WebRefusal } from '../failure.js'
import { namedQueues, queueRows } from '../state/queue-rows.js'
import { sparksOfLast } from '../state/sparks.js'
import { endpoint } from './endpoint.js'
import { changed, confirmation, instant, nothing, queueName } from './shapes.js'
import { workerRow } from './worker-endpoints.js'

/** The minutes of a queue's spark. */
const sparkMinutes = 60

/** Throws a refusal if a large action is not confirmed by the queue's name. */
export function refuseUnconfirmed(queue: string, confirm: string | undefined): void {
  if (confirm !== queue)
    throw new WebRefusal('argument-invalid', `to confirm it send \`confirm\` with the name of the queue, '${queue}'.`)
}

/** Begins a drain. Resolves with whether jobs are left. */
async function beginDrain(queue: QueueAdmin): Promise<boolean> {
  const begun = new AbortController()
  let left = 0
  const onProgress = ({ waiting, running }: { readonly waiting: number; readonly running: number }) => {
    left = waiting + running
    begun.abort()
  }
  await queue.drain({ signal: begun.signal, onProgress }).catch((error: unknown) => {
    if (!begun.signal.aborted) throw error
  })
  return left > 0
}

export const queueEndpoints = [
  endpoint({
    method: 'GET',
    path: '/queues/:queue',
    summary:
      'A queue: its counts, its settings, its throttle, what is held, its workers, and in `waits` why the first of its ready jobs has not begun',
    run: async ({ window, params: { queue = '' } }) => {
      const admin = await window.known(queue)
      const { mill } = window
      const [[row], all] = await Promise.all([queueRows(mill, sparksOfLast(sparkMinutes), [queue]), namedQueues(mill)])
      const stored = all.find(({ name }) => name === queue)?.stored
      const throttle = stored?.throttle && (await admin.throttle.get())
      const canHold = stored !== undefined && (await mill.adminParts.look()).throttles !== undefined
      const holds = canHold ? await admin.throttle.holds() : undefined
      const look = row?.damaged === undefined ? await lookInto(true, () => admin.look(), undefined) : undefined
      const { shardLagsMs } = look?.depth ?? {}
      const hasRecords = (await mill.adminParts.look()).records !== undefined
      const waits = hasRecords && row?.damaged === undefined ? await admin.explain() : []
      const settings = { ...mill.queues.get(queue), ...stored }
      const here = processIdentity()
      return {
        ...row,
        settings,
        ...defined({ shardLagsMs, throttle }),
        ...(holds && holds.total > 0 && { holds }),
        ...(waits.length > 0 && { waits }),
        workers: (look?.workers ?? []).map((worker) => workerRow(worker, here)),
      }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/history',
    summary:
      'The history of its jobs, by minute (of the last week) or by hour (of the last year); by default the last hour',
    query: {
      from: v.exactOptional(instant),
      to: v.exactOptional(instant),
      step: v.exactOptional(v.picklist(historySteps)),
    },
    run: async ({ window, params: { queue = '' }, query }) => (await window.known(queue)).history(query),
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/drain',
    summary: 'Refuse new jobs; `more`: jobs are left',
    action: 'queue.drain',
    body: nothing,
    answer: changed,
    run: async ({ window, params: { queue = '' } }) => ({
      changed: 1,
      more: await beginDrain(await window.known(queue)),
    }),
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/clear',
    summary: 'Remove its waiting and dead jobs, but no running ones',
    action: 'queue.clear',
    body: confirmation,
    answer: changed,
    run: ({ window, params: { queue = '' }, body: { confirm } }) => {
      refuseUnconfirmed(queue, confirm)
      return window.act(queue, (admin) => admin.clear())
    },
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/reshard',
    summary: 'Spread an ordered queue over `shards` shards; no job starts until that is done',
    action: 'queue.reshard',
    body: exactly({ shards: whole(1, 1_024) }),
    answer: changed,
    run: ({ window, params: { queue = '' }, body: { shards } }) => window.act(queue, (admin) => admin.reshard(shards)),
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/move',
    summary: 'Move the waiting and dead jobs of an ordered queue into another',
    action: 'queue.move',
    body: exactly({ to: queueName }),
    answer: changed,
    run: async ({ window, params: { queue = '' }, body: { to } }) => {
      await window.known(to)
      return window.act(queue, (admin) => admin.move(to))
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/events',
    summary: 'The live events of its jobs, as server-sent events by type; `events.lost` if some are missing',
    isStream: true,
    run: async ({ window, streams, params: { queue = '' }, asked }) => {
      await window.known(queue)
      return streams.queue(queue, asked.request.signal)
    },
  }),
]
