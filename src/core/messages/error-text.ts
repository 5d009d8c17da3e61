/** The kept text of an error: its message and a bounded stack. It works for any thrown value. */

import { codeIn, contentOf, describe, errorsIn, messageIn, mostNested, partOf } from './describe.js'

/** Most bytes kept of one error. */
export const errorTextLimit = 4_096
/**
 * The most frames kept of one stack: Node's own default. TypeScript loaders raise it to 50, which would leave no room
 * for causes.
 */
const mostFrames = 10
/** The most frames kept of each error of an `AggregateError`. */
const mostNestedFrames = 2
const deepest = 4

export type FormatError = (error: unknown) => string

/**
 * The stack of an error, which begins with its name, message and code; below it the errors that it stands for, and its
 * causes. Anything else as text.
 */
export const formatError: FormatError = (error) => {
  const parts = [oneError(error), ...nested(error)]
  let cause = partOf(error, 'cause')
  for (let depth = 1; depth < deepest && cause !== undefined; depth += 1) {
    parts.push(`caused by: ${oneError(cause)}`, ...nested(cause))
    cause = partOf(cause, 'cause')
  }
  return parts.join('\n')
}

/** The errors of an `AggregateError`; those that are such errors themselves with the first messages of theirs. */
function nested(error: unknown): string[] {
  const errors = errorsIn(error)
  const texts = errors.slice(0, mostNested).map((one, i) => {
    const inner = errorsIn(one).slice(0, mostNested).map(firstLine).join('; ')
    const text = oneError(one, mostNestedFrames)
    return `error ${i + 1} of ${errors.length}: ${text}${inner === '' ? '' : `\n  of: ${inner}`}`
  })
  return errors.length > mostNested ? [...texts, `and ${errors.length - mostNested} more errors`] : texts
}

function firstLine(error: unknown): string {
  return oneError(error, 0).split('\n', 1)[0]!
}

/** The text that `format` makes of the error, well-formed and within the limit. Never throws. */
export function errorText(error: unknown, format: FormatError): string {
  let text: unknown
  try {
    text = format(error)
  } catch {
    text = undefined
  }
  if (typeof text !== 'string' || text === '') text = formatError(error)
  // First cut, then make it well-formed: the cut may split a surrogate pair.
  return bounded(text as string).toWellFormed()
}

function oneError(error: unknown, frames = mostFrames): string {
  const stack = partOf(error, 'stack')
  const told = typeof stack === 'string' && stack !== '' ? shortened(stack, frames) : wordsFor(error)
  return bounded(withCode(told, error))
}

function wordsFor(error: unknown): string {
  const content = messageIn(error) ?? contentOf(error)
  if (content !== undefined) return content
  try {
    return String(error) || describe(error)
  } catch {
    return 'an error that cannot be shown'
  }
}

/** The text with the code of the error behind its message, unless that names it. */
function withCode(text: string, error: unknown): string {
  const code = codeIn(error)
  const end = text.search(/\n\s+at /)
  const message = end === -1 ? text : text.slice(0, end)
  if (code === undefined || message.includes(code)) return text
  return `${message} (code ${code})${text.slice(message.length)}`
}

/** The stack with its first frames only. */
function shortened(stack: string, most: number): string {
  let frames = 0
  return stack
    .split('\n')
    .filter((line) => !/^\s+at /.test(line) || ++frames <= most)
    .join('\n')
}

const ellipsisBytes = 3

function bounded(text: string): string {
  // The cut may split a character, which decoding would show as U+FFFD; the text before it is kept whole.
  const bytes = Buffer.from(text.slice(0, errorTextLimit))
  if (bytes.length <= errorTextLimit && text.length <= errorTextLimit) return text
  return `${new TextDecoder().decode(bytes.subarray(0, errorTextLimit - ellipsisBytes)).replace(/\ufffd+$/, '')}…`
}
