/** Throttles on the command line: `10/1m`, `10 in 1m`, and the flags that would set the same rules. */

import { InvalidArgumentError } from 'commander'
import type { ThrottleChange } from '../../client/admin/throttle-admin.js'
import { hasCode } from '../../core/errors.js'
import { countedMs, type ThrottleRule } from '../../core/queue/throttle.js'
import { throttleOf, throttleSchema } from '../../core/queue/throttle-options.js'
import { exactDuration, parseDuration } from '../../core/values/duration.js'
import { parsed } from '../../core/values/option-check.js'
import { UsageError } from '../process/exit-code.js'
import { count } from './figures.js'

/** A number of jobs in a length of time. */
export interface Rate {
  readonly jobs: number
  readonly ms: number
}

/** The spacing of the starts in a window, as flags give it. */
interface Evenness {
  readonly moderate?: boolean
  readonly elastic?: number
}

const most = 1_000_000

/** `10/60s`, `3/s`, `20/min`: a bare unit means one of it. */
export function rateFlag(given: string): Rate {
  const [, jobs = '', of = ''] = /^(\d{1,7})\/(\S+)$/.exec(given.trim()) ?? []
  const span = of.replace(/min$/, 'm')
  const ms = parseDuration(/^\d+$/.test(span) ? Number(span) : span.replace(/^(?=[a-z])/, '1')) ?? 0
  if (Number(jobs) >= 1 && Number(jobs) <= most && ms >= 1) return { jobs: Number(jobs), ms }
  throw new InvalidArgumentError(
    `Expected jobs/time such as 3/s, 300/h or 10/60s, with 1 to ${count(most)} jobs in at least 1 ms.`,
  )
}

/** `3/s,300/h`, added to those that were given before. */
export function ratesFlag(given: string, before: readonly Rate[] = []): Rate[] {
  return [...before, ...given.split(',').map(rateFlag)]
}

/** The same, or the word `default`, alone. */
export function rateChangeFlag(given: string, before?: readonly Rate[] | 'default'): readonly Rate[] | 'default' {
  if (given === 'default' && before === undefined) return given
  if (given === 'default' || before === 'default') throw new InvalidArgumentError('default stands alone.')
  return ratesFlag(given, before)
}

/** The given windows, all with the same spacing. */
export function windowsOf(rates: readonly Rate[], { moderate = false, elastic }: Evenness): ThrottleChange[] {
  return rates.map(({ jobs, ms }) => ({
    limit: jobs,
    window: ms,
    moderate,
    ...(elastic === undefined ? {} : { elastic: { buffer: elastic } }),
  }))
}

/** Their rules. Throws `UsageError` for contradictions, in the words for a queue's options. */
export function rulesOf(windows: readonly ThrottleChange[], what: string): readonly ThrottleRule[] {
  try {
    // A single window is not reported as the first of a list.
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

/** `10 in 1m, one each 6s, elastic with a buffer of 2`; several windows are joined by `and`. */
export function rulesText(rules: readonly ThrottleRule[]): string {
  return rules.map((rule) => [windowText(rule), ...evennessOf(rule)].join(', ')).join(' and ')
}

/** The spacing of its starts, in words; empty if they are not spaced. */
export function evennessOf(rule: ThrottleRule): string[] {
  const { limit, moderate, elasticBuffer } = rule
  if (!moderate || limit === 1) return []
  const each = `one each ${aboutText(countedMs(rule) / limit)}`
  return elasticBuffer === undefined ? [each] : [each, `elastic with a buffer of ${count(elasticBuffer)}`]
}

/** The flags of `queues throttle` that set these rules; undefined if their spacings differ. */
export function flagsFor(rules: readonly ThrottleRule[]): string | undefined {
  const [{ moderate, elasticBuffer }] = rules as readonly [ThrottleRule]
  if (rules.some((rule) => rule.moderate !== moderate || rule.elasticBuffer !== elasticBuffer)) return undefined
  return [
    `--set ${rules.map(({ limit, windowMs }) => `${limit}/${exactDuration(windowMs)}`).join(',')}`,
    ...(moderate ? ['--moderate'] : []),
    ...(elasticBuffer === undefined ? [] : [`--elastic ${elasticBuffer}`]),
  ].join(' ')
}

/** An approximate duration in few digits: `1.82s`, `60ms`, `2m1s`. */
export function aboutText(ms: number): string {
  if (ms < 10) return `${Number(ms.toFixed(2))}ms`
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(2))}s`
  return exactDuration(Math.round(ms / 1_000) * 1_000)
}
