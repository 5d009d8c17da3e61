/** The endpoints of schedules. */

import * as v from 'valibot'
import type { ScheduleRecord } from '../../client/schedules/schedule-view.js'
import type { JobRecord } from '../../core/job/job.js'
import { tickName } from '../../core/job/job-origin.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import { defined } from '../../core/values/defined.js'
import type { Mill } from '../../mill/mill.js'
import { WebRefusal } from '../failure.js'
import { shownJob } from '../mill-window.js'
import type { CheckedWebOptions } from '../web-options.js'
import { endpoint } from './endpoint.js'
import { cursor, limit, nothing, page, wholeText } from './shapes.js'

/** The jobs of a queue among which those of a schedule are looked for. */
const mostJobs = 200

/** The shown part of a schedule: of its input and its meta, what is shown of a job that has them. */
function shown(record: ScheduleRecord, options: Pick<CheckedWebOptions, 'hidePayloads' | 'redact'>) {
  const { input: _input, meta: _meta, ...schedule } = record
  if (options.hidePayloads) return { ...schedule, payloadsHidden: true }
  const { input, meta } = shownJob(jobOf(record), options)
  return { ...schedule, input, meta }
}

/** The job of its next tick, or of one right now, as a record. */
function jobOf({ name, task, queue, input, meta, createdAt, updatedAt, nextAt }: ScheduleRecord): JobRecord {
  const tickAt = nextAt ?? updatedAt
  return {
    ...{
      id: tickName(name, tickAt.getTime()),
      task,
      queue,
      state: 'scheduled',
      input,
      priority: 0,
      attempt: 1,
      crashes: 0,
    },
    ...defined({ meta }),
    ...{ createdAt, updatedAt, runAt: tickAt, schedule: { name, tickAt } },
  }
}

const halfHourMs = 1_800_000
const halfHours = 48

type TickingRule = Pick<ScheduleRecord, 'cron' | 'everyMs' | 'timeZone' | 'from' | 'until' | 'isPaused'>

/**
 * The half hours in which it ticks, of the 48 that begin with the present one, by their places from 0; none while it is
 * paused. At most 48 instants are computed, however often it ticks.
 */
export function nextDayOf({ cron, everyMs, timeZone, from, until, isPaused }: TickingRule, now: number): number[] {
  if (isPaused) return []
  const rule = { timeZone, ...defined({ cron, everyMs, fromAt: from?.getTime(), untilAt: until?.getTime() }) }
  const { next } = ticksOf(rule)
  const startAt = Math.floor(now / halfHourMs) * halfHourMs
  const places: number[] = []
  // What has ticked in the present half hour is no tick to come.
  for (let at = next(now); at !== undefined; ) {
    const place = Math.floor((at - startAt) / halfHourMs)
    if (place >= halfHours) break
    places.push(place)
    at = next(startAt + (place + 1) * halfHourMs - 1)
  }
  return places
}

/** Throws a refusal if there is no such schedule. */
async function found({ schedules }: Mill, name: string): Promise<ScheduleRecord> {
  const schedule = await schedules.get(name)
  if (schedule === undefined)
    throw new WebRefusal('not-found', `there is no schedule '${name}': \`GET schedules\` lists them.`)
  return schedule
}

function actEndpoint(verb: 'run' | 'pause' | 'resume' | 'clear', summary: string) {
  return endpoint({
    method: 'POST',
    path: `/schedules/:name/${verb}`,
    summary,
    action: `schedule.${verb}`,
    body: nothing,
    answer: v.looseObject({ changed: v.number(), more: v.boolean() }),
    run: async ({ window: { mill }, params: { name = '' } }) => {
      await found(mill, name)
      if (verb === 'clear') return { changed: await mill.schedules.clear(name), more: false }
      if (verb === 'pause') return { changed: 1, more: false, waiting: await mill.schedules.pause(name) }
      if (verb === 'resume') await mill.schedules.resume(name)
      const job = verb === 'run' ? await mill.schedules.runNow(name) : undefined
      return { changed: 1, more: false, ...(job && { job: { queue: job.queue, id: job.id, outcome: job.outcome } }) }
    },
  })
}

export const scheduleEndpoints = [
  endpoint({
    method: 'GET',
    path: '/schedules',
    summary:
      'The schedules by name, page by page; `nextDay`: in which of the 48 half hours from the present one on each ticks',
    query: { cursor, limit },
    answer: page,
    run: async ({ window: { mill, options }, query }) => {
      const { schedules, cursor: next } = await mill.schedules.list(query)
      const now = Date.now()
      const items = schedules.map((one) => ({ ...shown(one, options), nextDay: nextDayOf(one, now) }))
      return { items, ...defined({ cursor: next }) }
    },
  }),
  endpoint({
    method: 'GET',
    path: '/schedules/:name',
    summary: 'A schedule',
    run: async ({ window: { mill, options }, params: { name = '' } }) => shown(await found(mill, name), options),
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
  endpoint({
    method: 'GET',
    path: '/schedules/:name/jobs',
    summary: 'Its jobs among the first 200 of its queue, the latest tick first; `more`: the queue has others',
    answer: page,
    run: async ({ window, params: { name = '' } }) => {
      const { queue } = await found(window.mill, name)
      const { jobs, cursor: next } = await (await window.known(queue)).jobs.list({ limit: mostJobs })
      const own = jobs.flatMap((job) => (job.schedule?.name === name ? [{ job, tickAt: job.schedule.tickAt }] : []))
      const items = own.sort((a, b) => b.tickAt.getTime() - a.tickAt.getTime()).map(({ job }) => window.shown(job))
      return { items, more: next !== undefined }
    },
  }),
  actEndpoint('run', 'Enqueue its job now; its next tick does not change'),
  actEndpoint('pause', 'Stop its ticks until it is resumed; `waiting` of its jobs still run'),
  actEndpoint('resume', 'End a pause, from its next tick on'),
  actEndpoint('clear', 'Delete its jobs that no worker has begun'),
]
