/** The typed rule: a window of a throttle as it stands in a form, and as it is sent. */

import type { ThrottleRule } from '../../api/answers.js'

export interface TypedRule {
  readonly key: number
  readonly limit: string
  readonly window: string
  readonly isModerate: boolean
  /** Empty: it does not catch up. */
  readonly buffer: string
}

interface SentRule {
  readonly limit: number
  readonly window: string
  readonly moderate?: true
  readonly elastic?: { readonly buffer: number }
}

let lastKey = 0

const units: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
  [1, 'ms'],
]

/** As the server reads durations, by the largest unit that fits: `90s`, `1h`. */
function durationText(ms: number): string {
  const [size, name] = units.find(([unit]) => ms >= unit && ms % unit === 0) ?? [1, 'ms']
  return `${ms / size}${name}`
}

/** Without a rule an empty one. */
export function typedRule(rule?: ThrottleRule): TypedRule {
  lastKey += 1
  return {
    key: lastKey,
    limit: rule === undefined ? '' : String(rule.limit),
    window: rule === undefined ? '' : durationText(rule.windowMs),
    isModerate: rule?.moderate ?? false,
    buffer: rule?.elasticBuffer === undefined ? '' : String(rule.elasticBuffer),
  }
}

/** What is not well typed is sent as it is: the server says what is wrong with it. */
export function rulesOf(typed: readonly TypedRule[]): SentRule[] {
  return typed.map(({ limit, window, isModerate, buffer }) => ({
    ...{ limit: Number(limit), window: window.trim() },
    ...(isModerate && { moderate: true as const }),
    ...(isModerate && buffer !== '' && { elastic: { buffer: Number(buffer) } }),
  }))
}
