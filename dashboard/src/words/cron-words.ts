/** The cron words: the ticks of a schedule in words; rare forms stay in cron's notation. */

import { durationWords } from './duration-words.js'

const dayNames = ['Sundays', 'Mondays', 'Tuesdays', 'Wednesdays', 'Thursdays', 'Fridays', 'Saturdays']
const shortDays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const named: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const number = /^\d{1,2}$/
const step = /^\*\/(\d{1,2})$/

/**
 * `every 15 min`, `daily at 03:00`, `Mondays at 08:30`, `on day 1 of the month at 00:00`; undefined for other forms.
 */
export function cronWords(cron: string): string | undefined {
  const fields = (named[cron.toLowerCase()] ?? cron).trim().split(/\s+/)
  const [second, minute = '', hour = '', day = '', month = '', weekday = ''] =
    fields.length === 6 ? fields : ['0', ...fields]
  if (fields.length < 5 || fields.length > 6 || second !== '0' || month !== '*') return undefined
  const days = dayWords(day, weekday)
  if (days === undefined) return undefined
  if (number.test(minute) && number.test(hour)) return `${days} at ${twoDigits(hour)}:${twoDigits(minute)}`
  if (days !== 'daily') return undefined
  if (hour === '*') return ofHour(minute)
  const hours = stepOf(hour, 24)
  return minute === '0' && hours !== undefined ? `every ${durationWords(hours * 3_600_000)}` : undefined
}

function ofHour(minute: string): string | undefined {
  if (minute === '*') return 'every minute'
  if (number.test(minute)) return minute === '0' ? 'hourly' : `hourly at minute ${Number(minute)}`
  const minutes = stepOf(minute, 60)
  return minutes === undefined ? undefined : `every ${durationWords(minutes * 60_000)}`
}

/** If the step does not divide the whole, the last interval is shorter: no regular "every". */
function stepOf(field: string, whole: number): number | undefined {
  const size = Number(step.exec(field)?.[1])
  return size > 0 && whole % size === 0 ? size : undefined
}

function dayWords(day: string, weekday: string): string | undefined {
  if (day === '*' && (weekday === '*' || weekday === '?')) return 'daily'
  if (day === '*') return weekdayWords(weekday.toUpperCase())
  return number.test(day) && weekday === '*' ? `on day ${Number(day)} of the month` : undefined
}

function weekdayWords(field: string): string | undefined {
  if (field === '1-5' || field === 'MON-FRI') return 'on weekdays'
  const names = field.split(',').map((one) => dayNames[/^[0-7]$/.test(one) ? Number(one) % 7 : shortDays.indexOf(one)])
  return names.every((name) => name !== undefined) ? names.join(', ') : undefined
}

function twoDigits(text: string): string {
  return text.padStart(2, '0')
}
