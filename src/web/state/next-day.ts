/** The next day of a schedule: in which half hours it ticks. Pure. */

import type { ScheduleRecord } from '../../client/schedules/schedule-view.js'
import { ticksOf } from '../../core/schedule/schedule-rule.js'
import { defined } from '../../core/values/defined.js'

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
