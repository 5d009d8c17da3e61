/** A cron text: its fields, what is wrong with them, and the times that they name. The library `croner` reads each field. */

import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { messageOf } from '../values/describe.js'

/** Loaded where a cron text is read: who has no schedules need not pay for it, and options are checked in one step. */
const require = createRequire(import.meta.url)
const croner = () => require('croner') as typeof Croner

const cronForm =
  "5 fields (minute, hour, day of month, month, day of week), 6 with seconds before them, or one of @hourly, @daily, @weekly, @monthly and @yearly, such as '0 3 * * *'"

const fieldNames = ['second', 'minute', 'hour', 'day of month', 'month', 'day of week'] as const
const nicknames = new Set(['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'])

/** What is wrong with a cron text, as “cron …” goes on; undefined where nothing is. */
export function cronMistake(text: unknown): string | undefined {
  if (typeof text !== 'string') return `must be ${cronForm}`
  if (text.startsWith('@')) return nicknames.has(text.toLowerCase()) ? undefined : `must be ${cronForm}`
  const fields = [...text.matchAll(/\S+/g)]
  if (fields.length !== 5 && fields.length !== 6) return `must be ${cronForm}; its fields are ${fields.length}`
  const names = fieldNames.slice(6 - fields.length)
  for (const [i, { 0: field, index }] of fields.entries()) {
    const reason = fieldMistake(field, i, fields.length)
    if (reason !== undefined) return `has '${field}' as its ${names[i]}, at character ${index + 1}: ${reason}`
  }
  // What is wrong with no field by itself.
  const whole = mistakeIn(text)
  if (whole !== undefined) return `cannot be read: ${whole}`
  if (wallTimes(text)(Date.UTC(2000, 0, 1) - 1) === undefined)
    return 'names a date that never comes; check its day of month and its month'
  return undefined
}

/** The first local time after this one that the text names; undefined where none comes. The text is without mistakes. */
export function wallTimes(text: string): (afterWall: number) => number | undefined {
  const cron = new (croner().Cron)(text, { timezone: 'UTC', paused: true })
  return (afterWall) => cron.nextRun(new Date(afterWall))?.getTime()
}

/** The field in a text whose other fields say nothing. */
function fieldMistake(field: string, at: number, count: number): string | undefined {
  return mistakeIn(Array.from({ length: count }, (_, i) => (i === at ? field : '*')).join(' '))
}

/** As the library says it, without its own name before. */
function mistakeIn(text: string): string | undefined {
  try {
    ;new (croner().Cron)(text, { timezone: 'UTC', paused: true })
    return undefined
  } catch (error) {
    return messageOf(error).replace(/^\w+: /, '')
  }
}
