/** Option checks: the valibot pieces from which the shapes of our own options are put together, and the error that lists every mistake at once. */

import * as v from 'valibot'
import { durationForm, parseDuration } from './duration.js'
import { ConfigError, type ConfigIssue } from './errors.js'

/** A duration of at least `leastMs`, turned into milliseconds. */
export function duration(leastMs = 0) {
  return v.pipe(
    v.custom<number | string>((value) => parseDuration(value) !== undefined, `must be ${durationForm}`),
    v.transform((value) => parseDuration(value)!),
    v.minValue(leastMs, `must be at least ${leastMs} ms`),
  )
}

/** A whole number from `least` to `most`. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER) {
  const form =
    most === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${least}`
      : `must be a whole number from ${least} to ${most}`
  return v.pipe(v.number(form), v.integer(form), v.minValue(least, form), v.maxValue(most, form))
}

export function callable<T extends (...args: never[]) => unknown>() {
  return v.custom<T>((value) => typeof value === 'function', 'must be a function')
}

/** The parsed options. Throws `ConfigError` that lists every mistake. */
export function parsed<S extends v.GenericSchema>(schema: S, value: unknown, what: string): v.InferOutput<S> {
  const result = v.safeParse(schema, value)
  if (!result.success) throw new ConfigError(what, result.issues.map(issueOf))
  return result.output
}

export function issuesOf(schema: v.GenericSchema, value: unknown, path: string): ConfigIssue[] {
  const result = v.safeParse(schema, value)
  if (result.success) return []
  return result.issues.map(issueOf).map((issue) => ({ ...issue, path: `${path}.${issue.path}` }))
}

function issueOf(issue: v.BaseIssue<unknown>): ConfigIssue {
  const path = v.getDotPath(issue) ?? '(options)'
  // valibot says 'Expected never' of a key it does not know.
  if (issue.expected === 'never') return { path, message: 'is not an option; check its spelling' }
  return { path, message: `${issue.message}; got ${shown(issue.input)}` }
}

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'bigint') return `${value}n`
  const text =
    typeof value === 'object' && value !== null ? Object.prototype.toString.call(value) : String(JSON.stringify(value))
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
