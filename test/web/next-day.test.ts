/** The half hours of the next day in which a schedule ticks. */

import { expect, it } from 'vitest'
import { nextDayOf } from '#src/web/api/schedule-endpoints.js'

const now = Date.UTC(2026, 0, 1, 12, 10)
const rule = { timeZone: 'UTC', isPaused: false }

it.each([
  ['each second', { everyMs: 1_000 }, Array.from({ length: 48 }, (_, i) => i)],
  ['hourly', { cron: '0 * * * *' }, Array.from({ length: 24 }, (_, i) => 2 * i + 2).slice(0, 23)],
  ['at 12:05, which has passed today', { cron: '5 12 * * *' }, []],
  ['at 12:15', { cron: '15 12 * * *' }, [0]],
  ['at three in the morning in Berlin', { cron: '0 3 * * *', timeZone: 'Europe/Berlin' }, [28]],
  ['once a year, on another day', { cron: '0 0 1 6 *' }, []],
  ['until one hour from now', { everyMs: 60_000, until: new Date(now + 3_600_000) }, [0, 1, 2]],
  ['not while it is paused', { everyMs: 1_000, isPaused: true }, []],
] as const)('a schedule that ticks %s', (_, own, places) => {
  expect(nextDayOf({ ...rule, ...own }, now)).toEqual(places)
})
