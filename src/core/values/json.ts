/** JSON: read from others without a loss, and written for other programs. Pure. */

/** Between its strings, valid JSON has no other digits. */
const numbers = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
/** The fewest digits of an integer that is not safe. */
const longDigits = 16
const long = new RegExp(`\\d{${longDigits}}`)
const integer = /^-?\d+$/
/** The raw begin of a string that begins with `#`. */
const hashed = /^"(?:#|\\u0023)/
const colon = /\s*:/y

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
  // The integers become texts with a `#`, and the texts with a `#` get another one: so none is taken for a number.
  let isFound = false
  const parts: string[] = []
  const markedNumber = (token: string): string => {
    if (!integer.test(token) || !isBig(token)) return token
    isFound = true
    return `"#${token}"`
  }
  // No pattern for strings: one of many million characters exceeds the stack of a pattern.
  let at = 0
  while (at < text.length) {
    const open = text.indexOf('"', at)
    parts.push(text.slice(at, open < 0 ? undefined : open).replace(numbers, markedNumber))
    if (open < 0) break
    at = endOfString(text, open)
    const string = text.slice(open, at)
    parts.push(hashed.test(string) && !isKeyBefore(text, at) ? `"#${string.slice(1)}` : string)
  }
  if (!isFound) return value
  return JSON.parse(parts.join(''), (_, one: unknown) => {
    if (typeof one !== 'string' || !one.startsWith('#')) return one
    return one.startsWith('##') ? one.slice(1) : BigInt(one.slice(1))
  })
}

/** The place behind the string that begins at `open`. */
function endOfString(text: string, open: number): number {
  for (let quote = open; ; ) {
    quote = text.indexOf('"', quote + 1)
    let before = quote
    while (text[before - 1] === '\\') before -= 1
    // An even number of backslashes are pairs, which do not escape the quote.
    if ((quote - before) % 2 === 0) return quote + 1
  }
}

function isKeyBefore(text: string, at: number): boolean {
  colon.lastIndex = at
  return colon.test(text)
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
