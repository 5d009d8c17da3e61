/** JSON: read from others without a loss, and written for other programs. Pure. */

/** Strings, which may hold anything, and numbers. Valid JSON has no other digits. */
const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
/** The fewest digits of an integer that is not safe. */
const longDigits = 16
const long = new RegExp(`\\d{${longDigits}}`)
const integer = /^-?\d+$/

/**
 * The value, with a BigInt for each integer beyond ±(2^53 − 1), for JSON that others wrote: ids of other languages have
 * 64 bits, and `JSON.parse` turns 1234567890123456789 into another number without a word. Throws `SyntaxError` like
 * `JSON.parse`.
 */
export function exactJson(text: string): unknown {
  return parsed(text, (digits) => !Number.isSafeInteger(Number(digits)))
}

/**
 * Like `exactJson`, for JSON that Node may have written: what it wrote of a number stays a number, such as the 2^60 of
 * 1152921504606847000.
 */
export function exactJsonOfNode(text: string): unknown {
  return parsed(text, (digits) => String(Number(digits)) !== digits && digits !== '-0')
}

function parsed(text: string, isBig: (digits: string) => boolean): unknown {
  const value: unknown = JSON.parse(text)
  // Most inputs are short, and all of them pass here.
  if (text.length < longDigits || !long.test(text)) return value
  // No text may be taken for a number: the mark is one that does not occur.
  let mark = '#'
  while (text.includes(mark)) mark += '#'
  let isFound = false
  const marked = text.replace(tokens, (token) => {
    if (!integer.test(token) || !isBig(token)) return token
    isFound = true
    return `"${mark}${token}"`
  })
  if (!isFound) return value
  return JSON.parse(marked, (_, one: unknown) =>
    typeof one === 'string' && one.startsWith(mark) ? BigInt(one.slice(mark.length)) : one,
  )
}

/** JSON of a record, for programs. Big integers become text, maps and sets arrays, bytes base64. */
export function recordJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, plain, indent) ?? 'null'
}

function plain(this: unknown, key: string, value: unknown): unknown {
  // Buffers have a toJSON, which was called already: read the value itself.
  const own = (this as Record<string, unknown>)[key]
  if (own instanceof Uint8Array) return Buffer.from(own).toString('base64')
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Map || value instanceof Set) return [...value]
  return value
}
