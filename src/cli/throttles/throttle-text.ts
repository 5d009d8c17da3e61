/** Throttles as the command line takes and shows them: `10/1m`, `10 in 1m`, and the flags that would set the same rules. */

import { InvalidArgumentError } from 'commander'
import type { ThrottleChange } from '../../client/admin/throttle-admin.js'
import { hasCode } from '../../core/error-codes.js'
import { countedMs, type ThrottleRule } from '../../core/queue/throttle.js'
import { throttleOf, throttleSchema } from '../../core/queue/throttle-options.js'
import { exactDuration, parseDuration } from '../../core/values/duration.js'
import { parsed } from '../../core/values/option-check.js'
import { UsageError } from '../output/exit-code.js'
import { count } from '../output/figures.js'

/** So many jobs in so much time. */
export interface Rate {
  readonly jobs: number
  readonly ms: number
}

/** How evenly the starts of a window are spaced, as flags say it. */
interface Evenness {
  readonly moderate?: boolean
  readonly elastic?: number
}

const most = 1_000_000

/** `10/60s`, `3/s`, `20/min`: a bare unit is one of it. */
export function rateFlag(given: string): Rate {
  const [, jobs = '', of = ''] = /^(\d{1,7})\/(\S+)$/.exec(given.trim()) ?? []
  const span = of.replace(/min$/, 'm')
  const ms = parseDuration(/^\d+$/.test(span) ? Number(span) : span.replace(/^(?=[a-z])/, '1')) ?? 0
  if (Number(jobs) >= 1 && Number(jobs) <= most && ms >= 1) return { jobs: Number(jobs), ms }
  throw new InvalidArgumentError(
    `Expected jobs/time such as 3/s, 300/h or 10/60s, with 1 to ${count(most)} jobs in at least 1 ms.`,
  )
}

/** `3/s,300/h`, beside those that were given before. */
export function ratesFlag(given: string, before: readonly Rate[] = []): Rate[] {
  return [...before, ...given.split(',').map(rateFlag)]
}

/** The windows that were given, all as even. */
export function windowsOf(rates: readonly Rate[], { moderate = false, elastic }: Evenness): ThrottleChange[] {
  return rates.map(({ jobs, ms }) => ({
    limit: jobs,
    window: ms,
    moderate,
    ...(elastic === undefined ? {} : { elastic: { buffer: elastic } }),
  }))
}

/** Their rules. Throws `UsageError` that says what does not go together, as it is told of a queue's options. */
export function rulesOf(windows: readonly ThrottleChange[], what: string): readonly ThrottleRule[] {
  try {
    // One by itself is not told as the first of a list.
    return throttleOf('', parsed(throttleSchema, windows.length === 1 ? windows[0] : windows, what)).rules
  } catch (error) {
    if (!hasCode(error, 'config-invalid')) throw error
    const mistakes = error.issues.map(({ path, message }) => (path === '(options)' ? '' : `${path} `) + message)
    throw new UsageError(`${what}: ${mistakes.join('; ')}.`)
  }
}

/** `10 in 1m` */
export function windowText({ limit, windowMs }: Pick<ThrottleRule, 'limit' | 'windowMs'>): string {
  return `${count(limit)} in ${exactDuration(windowMs)}`
}

/** `10 in 1m, one each 6s, elastic with a buffer of 2`; of several windows with `and` between them. */
export function rulesText(rules: readonly ThrottleRule[]): string {
  return rules.map((rule) => [windowText(rule), ...evennessOf(rule)].join(', ')).join(' and ')
}

/** How its starts are spaced, in words; none where they are not. */
export function evennessOf(rule: ThrottleRule): string[] {
  const { limit, moderate, elasticBuffer } = rule
  if (!moderate || limit === 1) return []
  const each = `one each ${aboutText(countedMs(rule) / limit)}`
  return elasticBuffer === undefined ? [each] : [each, `elastic with a buffer of ${count(elasticBuffer)}`]
}

/** The flags of `queues throttle` that set these rules; undefined where they are not all as even. */
export function flagsFor(rules: readonly ThrottleRule[]): string | undefined {
  const [{ moderate, elasticBuffer }] = rules as readonly [ThrottleRule]
  if (rules.some((rule) => rule.moderate !== moderate || rule.elasticBuffer !== elasticBuffer)) return undefined
  return [
    `--set ${rules.map(({ limit, windowMs }) => `${limit}/${exactDuration(windowMs)}`).join(',')}`,
    ...(moderate ? ['--moderate'] : []),
    ...(elasticBuffer === undefined ? [] : [`--elastic ${elasticBuffer}`]),
  ].join(' ')
}

/** About so long, in few digits: `1.82s`, `60ms`, `2m1s`. */
export function aboutText(ms: number): string {
  if (ms < 10) return `${Number(ms.toFixed(2))}ms`
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(2))}s`
  return exactDuration(Math.round(ms / 1_000) * 1_000)
}
