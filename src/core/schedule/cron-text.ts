/** A cron text: its fields, its mistakes, and the times that it names. The library `croner` reads each field. */

import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { messageOf } from '../values/describe.js'

/**
 * Loaded at the first cron text, because a mill without schedules does not need it. By `require`, because options are
 * checked synchronously.
 */
const require = createRequire(import.meta.url)
const croner = () => require('croner') as typeof Croner

const cronForm =
  "5 fields (minute, hour, day of month, month, day of week), 6 with seconds before them, or one of @hourly, @daily, @weekly, @monthly and @yearly, such as '0 3 * * *'"

const fieldNames = ['second', 'minute', 'hour', 'day of month', 'month', 'day of week'] as const
const nicknames = new Set(['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'])

/** The mistake in a cron text, as the continuation of “cron …”; undefined if there is none. */
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
  // A mistake that no field has by itself.
  const whole = mistakeIn(text)
  if (whole !== undefined) return `cannot be read: ${whole}`
  if (wallTimes(text)(Date.UTC(2000, 0, 1) - 1) === undefined)
    return 'names a date that never comes; check its day of month and its month'
  return undefined
}

/** The first local time that the text names after a given one; undefined if there is none. The text must be valid. */
export function wallTimes(text: string): (afterWall: number) => number | undefined {
  const cron = new (croner().Cron)(text, { timezone: 'UTC', paused: true })
  return (afterWall) => cron.nextRun(new Date(afterWall))?.getTime()
}

/** The mistake in one field, found with all other fields set to `*`. */
function fieldMistake(field: string, at: number, count: number): string | undefined {
  return mistakeIn(Array.from({ length: count }, (_, i) => (i === at ? field : '*')).join(' '))
}

/** The library's message without its own name in front. */
function mistakeIn(text: string): string | undefined {
  try {
    ;new (croner().Cron)(text, { timezone: 'UTC', paused: true })
    return undefined
  } catch (error) {
    return messageOf(error).replace(/^\w+: /, '')
  }
}
