/** The ids of jobs and queues: their valid forms, and the source of new ones. */

import { createHash, randomFillSync } from 'node:crypto'
import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import type { Clock } from '../platform/clock.js'

const queueName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/
export const queueNameForm = '1 to 80 characters of A-Z a-z 0-9 . _ -, the first a letter or digit'

/** Queue names become parts of keys and file names: no separators, no braces. */
export function isQueueName(value: unknown): value is string {
  return typeof value === 'string' && queueName.test(value)
}

export const taskNameForm = '1 to 200 characters without control characters'

export function isTaskName(value: unknown): value is string {
  if (typeof value !== 'string' || value.length < 1 || value.length > 200 || !value.isWellFormed()) return false
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is being refused
  return !/[\u0000-\u001f\u007f]/.test(value)
}

export const jobIdForm = '1 to 256 bytes of valid UTF-8 text without NUL'

export const mostIdBytes = 256

/** Ids are keys in every store and travel in URLs; 256 bytes fit the index of each. */
export function isJobId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length >= 1 &&
    value.length <= mostIdBytes &&
    !value.includes('\0') &&
    value.isWellFormed() &&
    Buffer.byteLength(value) <= mostIdBytes
  )
}

/** What is wrong with a value that is no id, as the end of a sentence about it. An ordered job may have a number. */
export function idMistake(given: unknown, isOrdered = false): string {
  return mistakeIn(given, isOrdered ? `${jobIdForm}, or a finite number` : jobIdForm)
}

/** The same for a group. */
export function groupMistake(given: unknown): string {
  return mistakeIn(given, `${groupForm} ('' for none)`)
}

function mistakeIn(given: unknown, form: string): string {
  const isLong = typeof given === 'string' && Buffer.byteLength(given) > mostIdBytes
  const remedy = isLong ? ' `idOf(text)` of millrace makes an id of a longer text, such as an address.' : ''
  return `must be ${form}; got ${describe(given)}.${remedy}`
}

/** The length of a digest in an id. */
const digestDigits = 26

/**
 * An id made of any text, such as an address, a path or a key: always the same for the same text. A text that is valid as
 * an id stays as it is. A longer one is cut, and ends in `~` and 26 characters of its SHA-256. Pure. Throws
 * `InvalidArgumentError` if `text` is empty or no valid UTF-8 text.
 *
 * @example
 * await ctx.enqueue(crawl, { url }, { id: idOf(url) })
 */
export function idOf(text: string): string {
  if (typeof text !== 'string' || text === '' || !text.isWellFormed())
    throw new InvalidArgumentError(`idOf() expects a text that is not empty; got ${describe(text)}.`)
  const isShort: boolean = isJobId(text)
  if (isShort) return text
  const digest = createHash('sha256').update(text).digest()
  const room = mostIdBytes - digestDigits - 1
  // Cut between characters: a part of one would not be valid.
  const head = new TextDecoder()
    .decode(Buffer.from(text.replaceAll('\0', '')).subarray(0, room))
    .replace(/\uFFFD+$/, '')
  return `${head}~${digestId(digest)}`
}

/** The id of an ordered job as text; a finite number is converted. Undefined for an invalid value. */
export function orderedIdOf(value: unknown): string | undefined {
  if (isJobId(value)) return value
  return Number.isFinite(value) ? String(value) : undefined
}

export const groupForm = 'at most 256 bytes of valid UTF-8 text without NUL, or a finite number'

/** The group of a job as text, `''` for none; a finite number is converted. Undefined for an invalid value. */
export function groupNameOf(value: unknown): string | undefined {
  return value === '' ? '' : orderedIdOf(value)
}

/** Crockford's base 32: no letters that look like digits, and sorted by their bytes. */
const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const digitCodes = Buffer.from(digits)

/**
 * A source of new job ids. They are ULIDs (26 characters: 48 bits of milliseconds, then 80 bits), strictly growing
 * within one source, so jobs enqueued together are neighbours in an index. The first 15 of the 80 bits count within a
 * millisecond, the others are random. Ten characters less than a UUID save ten bytes in every index that has the id.
 */
export function createIdSource(clock: Clock): () => string {
  let lastMs = 0
  let count = 0
  let prefix = inDigits(0, 10)
  // The prefix and the first two of the three digits that count.
  let head = `${prefix}00`
  const bytes = Buffer.alloc(512 * randomDigits)
  let pool = ''
  let at = 0
  return () => {
    // A wall clock derived from a monotonic one has fractions.
    const now = Math.floor(clock.now())
    if (now > lastMs) {
      lastMs = now
      count = 0
      prefix = inDigits(now, 10)
    } else if (++count > 0x7fff) {
      // More than 32,768 ids in a millisecond, or a clock that stopped or went back: run ahead of it to keep the order.
      lastMs += 1
      count = 0
      prefix = inDigits(lastMs, 10)
    }
    if ((count & 31) === 0) head = prefix + digits[count >> 10] + digits[(count >> 5) & 31]
    if (at === pool.length) {
      // One call to the kernel for hundreds of ids: a call for each would cost more than everything else here.
      pool = randomDigitsIn(bytes)
      at = 0
    }
    const from = at
    at += randomDigits
    // The slice is one short of all: a longer one would keep the whole pool alive instead of being a copy.
    return head + digits[count & 31] + pool[from] + pool.slice(from + 1, at)
  }
}

const randomDigits = 13

/** Fills the bytes with random digits; returns them as text. */
function randomDigitsIn(bytes: Buffer): string {
  randomFillSync(bytes)
  toDigits(bytes)
  return bytes.toString('latin1')
}

/** A function that is nothing but this loop: V8 compiles it while it runs, and would leave that code at what follows. */
function toDigits(bytes: Buffer): void {
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = digitCodes[bytes[i]! & 31]!
}

function inDigits(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = digits[rest % 32]! + text
  return text
}

/** An id derived from a digest of at least 26 bytes; it looks like a new one. */
export function digestId(digest: Uint8Array): string {
  let id = ''
  for (const byte of digest.subarray(0, digestDigits)) id += digits[byte & 31]
  return id
}

/** Whether a worker's id belongs to a listener, whose jobs run in the user's own programs. */
export function isListenerId(worker: string): boolean {
  return /\/l(?:t\d+-)?\d+-[\da-f]+$/.test(worker)
}
