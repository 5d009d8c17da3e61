/** The description of a value for messages: short, for any value. Looking at a thrown value never throws. */

import { inspect } from 'node:util'
import { isMillraceError } from '../errors.js'

const longest = 80

export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return shortened(JSON.stringify(value))
    case 'bigint':
      return shortened(`${value}n`)
    case 'function':
      return 'a function'
    case 'object':
      return value === null ? 'null' : tagOf(value)
    default:
      return shortened(String(value))
  }
}

/** The most of the errors of an `AggregateError` that its words name. */
const mostNamed = 3

/**
 * The thrown value in words, never none: the message of an error and those of the errors that it stands for, otherwise
 * its code or name; of any other object its message or content.
 */
export function messageOf(error: unknown): string {
  return wordsOf(error, 2)
}

function wordsOf(error: unknown, deep: number): string {
  const words = messageIn(error)
  const errors = deep > 0 ? errorsIn(error) : []
  if (errors.length > 0) {
    const told = errors.slice(0, mostNamed).map((one) => wordsOf(one, deep - 1))
    const more = errors.length > mostNamed ? [`and ${errors.length - mostNamed} more`] : []
    return `${words === undefined ? '' : `${words}: `}${[...told, ...more].join('; ')}`
  }
  if (words !== undefined) return words
  const code = codeIn(error)
  if (code !== undefined) return `${nameIn(error)} (code ${code})`
  return isError(error) ? nameIn(error) : (contentOf(error) ?? describe(error))
}

function nameIn(error: unknown): string {
  const name = partOf(error, 'name')
  return typeof name === 'string' && name !== '' ? name : 'Error'
}

/** A proxy may throw at the question. */
function isError(value: unknown): boolean {
  try {
    return value instanceof Error
  } catch {
    return false
  }
}

function shortened(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

function tagOf(value: object): string {
  try {
    return shortened(Object.prototype.toString.call(value))
  } catch {
    return 'an object that cannot be shown'
  }
}

/** Names in a row; of many only the first, and the number of the others. */
export function namesText(names: readonly string[], most = 20): string {
  const more = names.length - most
  return more > 0 ? `${names.slice(0, most).join(', ')} and ${more} more` : names.join(', ')
}

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
