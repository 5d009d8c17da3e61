/** The endpoints of a queue's morgue: dead jobs, one by one or by their error, revived or removed. */

import * as v from 'valibot'
import type { JobRecord } from '../../core/job/job.js'
import { errorKind } from '../../core/messages/error-kind.js'
import { defined } from '../../core/values/defined.js'
import { pagesOf } from '../../core/values/pages.js'
import { WebRefusal } from '../failure.js'
import type { MillWindow } from '../mill-window.js'
import { endpoint } from './endpoint.js'
import { refuseUnconfirmed } from './queue-endpoints.js'
import { changedSome, cursor, deadChoice, limit, listFilter, page, reviveChoice, taskName } from './shapes.js'

export const morgueEndpoints = [
  endpoint({
    method: 'GET',
    path: '/queues/:queue/morgue',
    summary:
      'Its dead jobs, page by page; with `task` or a filter only those of each page, and pages without any are passed over for a second',
    query: {
      by: v.exactOptional(v.picklist(['id', 'time'])),
      task: v.exactOptional(taskName),
      ...listFilter,
      cursor,
      limit,
    },
    answer: page,
    run: async ({ window, params: { queue = '' }, query }) => {
      const { jobs, cursor: next } = await window.pageWithJobs(query, (await window.known(queue)).morgue.list)
      return { items: jobs.map((job) => window.shown(job)), ...defined({ cursor: next }) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/queues/:queue/morgue/errors',
    summary:
      'Its latest dead jobs by task and `kind` of error: ids and numbers in it may differ; `hours`: deaths in each of the last 24',
    run: async ({ window, params: { queue = '' } }) => errorGroups(window, queue, Date.now()),
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
  endpoint({
    method: 'POST',
    path: '/queues/:queue/morgue/revive',
    summary:
      'Bring dead jobs back into the queue, with all attempts; with `members`, the dead jobs that they waited for too; one with another `input`',
    action: 'morgue.revive',
    body: reviveChoice,
    answer: changedSome,
    run: ({ window, params: { queue = '' }, body: { members, ...body } }) => {
      const { ids, where, confirm } = body
      if (ids === undefined) refuseUnconfirmed(queue, confirm)
      const how = { members, ...('input' in body && { input: body.input }) }
      if (where === undefined) return window.act(queue, ({ morgue }) => morgue.revive(ids ?? 'all', how))
      if (members !== undefined || 'input' in body)
        throw new WebRefusal('argument-invalid', '`where` takes neither `members` nor `input`: give `ids`.')
      return window.actOn(queue, (admin) => admin.filteredSteps('revive', window.filterOf(where), body))
    },
  }),
  endpoint({
    method: 'POST',
    path: '/queues/:queue/morgue/delete',
    summary: 'Remove dead jobs for good',
    action: 'morgue.delete',
    body: deadChoice,
    answer: changedSome,
    run: ({ window, params: { queue = '' }, body }) => {
      const { ids, where, confirm } = body
      if (ids === undefined) refuseUnconfirmed(queue, confirm)
      if (where === undefined) return window.act(queue, ({ morgue }) => morgue.delete(ids ?? 'all'))
      return window.actOn(queue, (admin) => admin.filteredSteps('delete-dead', window.filterOf(where), body))
    },
  }),
]

interface ErrorGroup {
  /** The kind of their errors: with the task, what tells the group from others. */
  readonly kind: string
  /** The first line of the latest one. */
  readonly error: string
  readonly task: string
  count: number
  /** The first 1,000 of them. */
  readonly ids: string[]
  /** When the first and the last of them died. */
  firstAt: Date | undefined
  lastAt: Date | undefined
  /** How many died in each of the last 24 hours, the present one last. */
  readonly hours: number[]
}

const mostScanned = 5_000
const mostGroups = 200
const mostIds = 1_000
const longestError = 300
const shownHours = 24
const hourMs = 3_600_000

/** Groups the latest 5,000 dead jobs; `more`: there are others. The largest groups come first. */
async function errorGroups(
  window: MillWindow,
  queue: string,
  now: number,
): Promise<{ scanned: number; more: boolean; groups: ErrorGroup[] }> {
  const { morgue } = await window.known(queue)
  const groups = new Map<string, ErrorGroup>()
  let scanned = 0
  let more = false
  for await (const { jobs, cursor } of pagesOf((from) => morgue.list({ limit: 200, ...from }))) {
    for (const job of jobs) add(groups, window.shown(job), now)
    scanned += jobs.length
    more = cursor !== undefined
    if (scanned >= mostScanned) break
  }
  const largest = [...groups.values()].sort((a, b) => b.count - a.count)
  return { scanned, more: more || largest.length > mostGroups, groups: largest.slice(0, mostGroups) }
}

function add(groups: Map<string, ErrorGroup>, job: JobRecord, now: number): void {
  const error = firstLine(job)
  const kind = errorKind(error)
  const key = JSON.stringify([job.task, kind])
  const { task, finishedAt } = job
  const group = groups.get(key) ?? {
    ...{ kind, error, task, count: 0, ids: [], firstAt: finishedAt, lastAt: finishedAt },
    hours: new Array<number>(shownHours).fill(0),
  }
  groups.set(key, group)
  group.count += 1
  if (group.ids.length < mostIds) group.ids.push(job.id)
  if (finishedAt === undefined) return
  // A clock that is behind the store's may call a death of this moment one of the next hour.
  const ago = Math.max(0, Math.floor(now / hourMs) - Math.floor(finishedAt.getTime() / hourMs))
  if (ago < shownHours) group.hours[shownHours - 1 - ago]! += 1
  if (group.lastAt === undefined || finishedAt > group.lastAt) group.lastAt = finishedAt
  if (group.firstAt === undefined || finishedAt < group.firstAt) group.firstAt = finishedAt
}

function firstLine({ error, reason }: JobRecord): string {
  const [line = ''] = (error ?? reason ?? '').split('\n')
  return line.slice(0, longestError).toWellFormed()
}
