/** The kept text of an error: its message and a bounded stack. It works for any thrown value. */

/** Most bytes kept of one error. */
export const errorTextLimit = 4_096
/**
 * The most frames kept of one stack: Node's own default. TypeScript loaders raise it to 50, which would leave no room
 * for causes.
 */
const mostFrames = 10

export type FormatError = (error: unknown) => string

/** The stack of an error, which begins with its name and message, its causes below it; anything else as text. */
export const formatError: FormatError = (error) => {
  const parts: string[] = []
  let current = error
  for (let depth = 0; depth < 4 && current !== undefined; depth += 1) {
    parts.push(depth === 0 ? oneError(current) : `caused by: ${oneError(current)}`)
    current = read(current, 'cause')
  }
  return parts.join('\n')
}

/** The text that `format` makes of the error, well-formed and within the limit. Never throws. */
export function errorText(error: unknown, format: FormatError): string {
  let text: unknown
  try {
    text = format(error)
  } catch {
    text = undefined
  }
  if (typeof text !== 'string' || text === '') text = oneError(error)
  // First cut, then make it well-formed: the cut may split a surrogate pair.
  return bounded(text as string).toWellFormed()
}

function oneError(error: unknown): string {
  const stack = read(error, 'stack')
  if (typeof stack === 'string' && stack !== '') return bounded(shortened(stack))
  const message = read(error, 'message')
  if (typeof message === 'string' && message !== '') return bounded(message)
  try {
    return bounded(String(error))
  } catch {
    return 'an error that cannot be shown'
  }
}

/** The stack with its first frames only. */
function shortened(stack: string): string {
  let frames = 0
  return stack
    .split('\n')
    .filter((line) => !/^\s+at /.test(line) || ++frames <= mostFrames)
    .join('\n')
}

/** A property of any value: a getter may throw, a proxy may do worse. */
function read(value: unknown, key: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[key]
  } catch {
    return undefined
  }
}

const ellipsisBytes = 3

function bounded(text: string): string {
  // The cut may split a character, which decoding would show as U+FFFD; the text before it is kept whole.
  const bytes = Buffer.from(text.slice(0, errorTextLimit))
  if (bytes.length <= errorTextLimit && text.length <= errorTextLimit) return text
  return `${new TextDecoder().decode(bytes.subarray(0, errorTextLimit - ellipsisBytes)).replace(/\ufffd+$/, '')}…`
}
