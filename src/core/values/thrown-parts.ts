/** The parts of a thrown value, whatever it is: looking at them never throws. */

import { inspect } from 'node:util'
import { isMillraceError } from '../errors.js'

/** The most errors of an `AggregateError` that a text names. */
export const mostNested = 8
const longestShown = 500

/** A property of any value: a getter may throw, a proxy may do worse. */
export function partOf(value: unknown, key: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[key]
  } catch {
    return undefined
  }
}

/** Its message; undefined if it has none, or an empty one. */
export function messageIn(value: unknown): string | undefined {
  const message = partOf(value, 'message')
  return typeof message === 'string' && message !== '' ? message : undefined
}

/**
 * Its code, as errors of Node, of databases and of services have one; undefined if it has none. An error of Millrace has
 * a name that says the same.
 */
export function codeIn(value: unknown): string | undefined {
  try {
    if (typeof value !== 'object' || value === null || isMillraceError(value)) return undefined
  } catch {
    return undefined
  }
  const code = partOf(value, 'code')
  if (typeof code === 'number' && Number.isFinite(code)) return String(code)
  return typeof code === 'string' && code !== '' ? code : undefined
}

/** The errors that an `AggregateError` stands for; none for any other value. */
export function errorsIn(value: unknown): readonly unknown[] {
  const errors = partOf(value, 'errors')
  try {
    return value instanceof Error && Array.isArray(errors) ? [...errors] : []
  } catch {
    return []
  }
}

/** The content of a thrown object that is no error, on one line, without calling any of its code; undefined for others. */
export function contentOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    const options = { customInspect: false, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 200 }
    const text = inspect(value, { ...options, depth: 2, maxArrayLength: 10 })
    const line = text.replaceAll(/\s*\n\s*/g, ' ')
    return line.length > longestShown ? `${line.slice(0, longestShown)}…` : line
  } catch {
    return undefined
  }
}
