/** A cron text: its fields, its mistakes, and the times that it names. The library `croner` reads each field. */

import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { messageOf } from '../messages/describe.js'

/**
 * Loaded at the first cron text, because a mill without schedules does not need it. By `require`, because options are
 * checked synchronously.
 */
const require = createRequire(import.meta.url)
const croner = () => require('croner') as typeof Croner

const cronForm =
  "5 fields (minute, hour, day of month, month, day of week), 6 with seconds before them, or one of @hourly, @daily, @weekly, @monthly and @yearly, such as '0 3 * * *'"

const nicknames = new Set(['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'])

/** The mistake in a cron text, as the continuation of “cron …”; undefined if there is none. */
export function cronMistake(given: unknown): string | undefined {
  if (typeof given !== 'string') return `must be ${cronForm}`
  const text = given.trim()
  const foreign = foreignMistake(text)
  if (foreign !== undefined) return foreign
  if (text.startsWith('@')) return nicknames.has(text.toLowerCase()) ? undefined : `must be ${cronForm}`
  const fields = [...given.matchAll(/\S+/g)]
  const texts = fields.map(([field]) => field)
  if (fields.length > 5 && !isRead(texts) && isRead(texts.slice(0, 5)) && !texts.includes('?'))
    return `has '${texts.slice(5).join(' ')}' after its five fields. A crontab has a command there: give the \`task\` and its \`input\` instead`
  if (fields.length !== 5 && fields.length !== 6) return `must be ${cronForm}; its fields are ${fields.length}`
  const forms = fieldForms.slice(6 - fields.length)
  for (const [i, { 0: field, index }] of fields.entries()) {
    const reason = fieldMistake(field, forms[i]!) ?? mistakeIn(texts.map((_, at) => (at === i ? field : '*')))
    if (reason !== undefined) return `has '${field}' as its ${forms[i]!.name}, at character ${index + 1}: ${reason}`
  }
  // A mistake that no field has by itself.
  const whole = mistakeIn(texts)
  if (whole !== undefined) return `cannot be read: ${whole}`
  if (wallTimes(text)(Date.UTC(2000, 0, 1) - 1) === undefined)
    return 'names a date that never comes; check its day of month and its month'
  return undefined
}

/** The first local time that the text names after a given one; undefined if there is none. The text must be valid. */
export function wallTimes(text: string): (afterWall: number) => number | undefined {
  const cron = read(text.trim())
  return (afterWall) => cron.nextRun(new Date(afterWall))?.getTime()
}

/**
 * Whether the text ticks in every hour, so that what it means is time that passes. A repeated hour then ticks twice, and
 * one that is skipped not at all.
 */
export function isHourly(text: string): boolean {
  const fields = text.trim().split(/\s+/)
  if (fields.length === 1) return fields[0]!.toLowerCase() === '@hourly'
  return /^(?:\*(?:\/1)?|0-23)$/.test(fields.at(-4)!)
}

/** The mistake of a text that another program understands. */
function foreignMistake(text: string): string | undefined {
  const [first = ''] = text.split(/\s/)
  if (/^@reboot$/i.test(first))
    return '@reboot names no time: enqueue the job when your program starts, or in `onWorkerStart`'
  if (/^@every$/i.test(first))
    return `@every is an interval: give \`every: '${text.slice(7).trim() || '15m'}'\` instead of \`cron\``
  const zone = /^(?:CRON_)?TZ=(\S*)/.exec(text)
  if (zone !== null)
    return `must begin with its first field: give the zone as \`timeZone: '${zone[1] || 'Europe/Zurich'}'\``
  const wrapped = /^(?:cron|rate)\(/i.exec(text)
  if (wrapped !== null)
    return `must be ${cronForm}, without '${wrapped[0]}…)'. An expression of EventBridge has the year as its last field: leave it out`
  return undefined
}

function isRead(fields: readonly string[]): boolean {
  return fields.length <= 6 && mistakeIn(fields) === undefined
}

/** The library's message without its own name in front. */
function mistakeIn(fields: readonly string[]): string | undefined {
  try {
    read(fields.join(' '))
    return undefined
  } catch (error) {
    return messageOf(error).replace(/^\w+: /, '')
  }
}

// As Vixie cron has it: if both days are given, one match is enough. But if one of the two begins with `*`, as `*/2` does,
// both must match.
function read(text: string): Croner.Cron {
  const fields = text.split(/\s+/)
  const domAndDow = [fields.at(-3), fields.at(-1)].some((field) => field?.startsWith('*'))
  return new (croner().Cron)(text, { timezone: 'UTC', paused: true, domAndDow })
}

/** The range of a field. */
interface FieldForm {
  readonly name: string
  readonly from: number
  readonly to: number
  /** The names that stand for its numbers. */
  readonly words?: readonly string[]
}

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const weekdays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

/** The fields of a text of six; one of five has no first. */
const fieldForms: readonly FieldForm[] = [
  { name: 'second', from: 0, to: 59 },
  { name: 'minute', from: 0, to: 59 },
  { name: 'hour', from: 0, to: 23 },
  { name: 'day of month', from: 1, to: 31 },
  { name: 'month', from: 1, to: 12, words: months },
  { name: 'day of week', from: 0, to: 7, words: weekdays },
]

/**
 * The mistake in a field, as far as it is a usual one, in the words of the text and not in those of a parser; undefined
 * if there is none of these.
 */
function fieldMistake(field: string, form: FieldForm): string | undefined {
  if (field.includes('?') && !form.name.startsWith('day'))
    return "'?' may stand only for a day. Of six fields the first is the second; EventBridge has the year as its last, which must be left out"
  if (field.includes('?') && field !== '?') return "'?' must stand alone; a step needs '*'"
  for (const item of field.split(',')) {
    const mistake = itemMistake(item, form)
    if (mistake !== undefined) return mistake
  }
  return undefined
}

function itemMistake(item: string, form: FieldForm): string | undefined {
  if (item === '') return 'a list has something on both sides of each comma'
  const [range = '', step, ...more] = item.split('/')
  if (more.length > 0) return `'${item}' has two steps`
  // Sunday is both 0 and 7.
  const mostStep = form.to === 7 ? 7 : form.to - form.from + 1
  if (step !== undefined && !(/^\d+$/.test(step) && Number(step) >= 1 && Number(step) <= mostStep))
    return `the step '${step}' must be a whole number from 1 to ${mostStep}`
  if (step !== undefined && /^\w+$/.test(range))
    return `a step needs a range before it: '*/${step}', or '${range}-${form.to}/${step}' to begin at ${range}`
  const [low = '', high, ...rest] = range.split('-')
  if (range.startsWith('-')) return `'${item}' is below the least, ${form.from}`
  if (rest.length > 0) return `'${range}' has two ends too many`
  for (const value of high === undefined ? [low] : [low, high]) {
    const mistake = valueMistake(value, form)
    if (mistake !== undefined) return mistake
  }
  const [least, most] = [numberOf(low, form), numberOf(high ?? '', form)]
  // A week may end on Sunday, by name or as 0.
  if (least !== undefined && most !== undefined && least > most && !(form.to === 7 && most === 0))
    return `the range '${range}' ends before it begins`
  return undefined
}

/** Only of plain numbers and words: `L`, `W` and `#` are left to the reader of the whole text. */
function valueMistake(value: string, form: FieldForm): string | undefined {
  const { name, from, to, words } = form
  if (/^\d+$/.test(value) && (Number(value) < from || Number(value) > to))
    return `${value} is no ${name}; it is a number from ${from} to ${to}${words === undefined ? '' : `, or ${words[0]} to ${words.at(-1)}`}`
  const isWord = /^[a-z]{2,}$/i.test(value) && value.toUpperCase() !== 'LW'
  if (isWord && numberOf(value, form) === undefined)
    return `'${value}' is no ${name}; it is a number from ${from} to ${to}${words === undefined ? '' : `, or one of ${words.join(', ')}`}`
  return undefined
}

function numberOf(value: string, { words }: FieldForm): number | undefined {
  if (/^\d+$/.test(value)) return Number(value)
  const index = words?.indexOf(value.toUpperCase()) ?? -1
  return index === -1 ? undefined : index
}
