/** A duration as users write it: `'5m'`, `'1h30m'` or a number of milliseconds. Inside the code durations are numbers named `…Ms`. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'

/**
 * Amounts of this unit, of smaller ones, or both: `'1h30m'`, but not `'30m1h'`. Allowing every order would give the
 * compiler hundreds of forms to compare.
 */
type From<Unit extends string, Smaller extends string> = `${number}${Unit}` | Smaller | `${number}${Unit}${Smaller}`
type Amounts = From<'w', From<'d', From<'h', From<'m', From<'s', `${number}ms`>>>>>
/** The suggestions of editors. */
type Usual = '100ms' | '500ms' | '1s' | '5s' | '10s' | '30s' | '1m' | '5m' | '15m' | '30m' | '1h' | '6h' | '1d' | '7d'

/**
 * A number of milliseconds, or text: `'500ms'`, `'30s'`, `'5m'`, `'1h30m'`, `'3d'`, `'2w'`. Cast text that the compiler
 * cannot read, such as an environment variable, with `as Duration`; it is checked when it is used.
 */
// The intersection keeps the compiler from dropping the usual ones, which the form covers.
export type Duration = number | Usual | (Amounts & Record<never, never>)

const unitMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const part = /(\d+(?:\.\d+)?)(ms|[smhdw])/g
const whole = /^(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+$/

/** 285,616 years: longer durations lose milliseconds in a double. */
const longestMs = Number.MAX_SAFE_INTEGER

/** The furthest time ahead of a job. A later one is a mix-up of seconds and milliseconds. */
export const furthestMs = 10 * 365.25 * 86_400_000

export const durationForm =
  "a duration such as '500ms', '30s', '5m', '1h30m' or '3d', or a whole number of milliseconds"

/** The milliseconds of a duration, or undefined if it is not one. Never negative, always whole. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? value : undefined
  if (typeof value !== 'string' || value.length > 64 || !whole.test(value)) return undefined
  const ms = Math.round(sumOf(value))
  return ms <= longestMs ? ms : undefined
}

function sumOf(text: string): number {
  let ms = 0
  for (const [, amount, unit] of text.matchAll(part)) ms += Number(amount) * unitMs[unit!]!
  return ms
}

/** A number as JavaScript writes it, with a unit. */
const computed = /^(-?(?:\d+(?:\.\d+)?|Infinity)(?:e[+-]\d+)?)(ms|[smhdw])$/

/**
 * The milliseconds that a text states, even if they are out of range: too many, infinitely many, or fewer than none, as
 * in `${-1}s`. Undefined if it does not have the form of a duration.
 */
export function statedMs(text: string): number | undefined {
  if (text.length > 400) return undefined
  if (whole.test(text)) return sumOf(text)
  const [, amount, unit] = computed.exec(text) ?? []
  return amount === undefined ? undefined : Number(amount) * unitMs[unit!]!
}

/** The milliseconds of a duration. Throws `InvalidArgumentError`, which names `what`, if it is not one. */
export function durationMs(value: unknown, what: string): number {
  const ms = parseDuration(value)
  if (ms === undefined) throw new InvalidArgumentError(`${what} must be ${durationForm}; got ${describe(value)}.`)
  return ms
}

const exactUnits = ['d', 'h', 'm', 's', 'ms'] as const

/** The exact duration in a form that `parseDuration` accepts: `'1m'`, `'1h30m'`, `'1s500ms'`. `ms` is whole. */
export function exactDuration(ms: number): string {
  let rest = ms
  const parts = exactUnits.map((unit) => {
    const amount = Math.floor(rest / unitMs[unit]!)
    rest -= amount * unitMs[unit]!
    return amount > 0 ? `${amount}${unit}` : ''
  })
  return parts.join('') || '0ms'
}

/** A duration for people: the two largest units, `'3m 12s'`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)}ms`
  const parts: string[] = []
  let rest = Math.round(ms / 1_000)
  for (const [unit, seconds] of [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
    ['s', 1],
  ] as const) {
    const amount = Math.floor(rest / seconds)
    rest -= amount * seconds
    if (amount > 0) parts.push(`${amount}${unit}`)
    if (parts.length === 2) break
  }
  return parts.join(' ')
}
