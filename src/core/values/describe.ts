/** The description of a value for messages: short, for any value. */

import { codeIn, contentOf, errorsIn, messageIn, partOf } from './thrown-parts.js'

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
