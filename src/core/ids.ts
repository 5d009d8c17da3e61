/** Ids: of jobs and queues, what may be one and how a new one is made. */

import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.js'

const queueName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/
export const queueNameForm = '1 to 80 characters of A-Z a-z 0-9 . _ -, the first a letter or digit'

/** Queue names build keys and file names elsewhere: no separators, no braces. */
export function isQueueName(value: unknown): value is string {
  return typeof value === 'string' && queueName.test(value)
}

export const taskNameForm = '1 to 200 characters without control characters'

export function isTaskName(value: unknown): value is string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is being refused
  return typeof value === 'string' && value.length >= 1 && value.length <= 200 && !/[\u0000-\u001f\u007f]/.test(value)
}

export const jobIdForm = '1 to 256 bytes of valid UTF-8 text without NUL'

/** Ids are keys in every store and travel in URLs; 256 bytes fit the index of each. */
export function isJobId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length >= 1 &&
    value.length <= 256 &&
    !value.includes('\0') &&
    value.isWellFormed() &&
    Buffer.byteLength(value) <= 256
  )
}

/**
 * A source of new job ids: UUIDs of version 7 (RFC 9562 §5.7, method 1 of §6.2), strictly growing within one source,
 * so that jobs enqueued together lie together in an index. The 12 bits after the millisecond count within it.
 */
export function createIdSource(clock: Clock): () => string {
  let lastMs = 0
  let count = 0
  let pool: Buffer = Buffer.alloc(0)
  let at = 0
  return () => {
    // Wall clocks put together from monotonic ones have fractions.
    const now = Math.floor(clock.now())
    if (now > lastMs) {
      lastMs = now
      count = 0
    } else if (++count > 0xfff) {
      // More than 4,096 in a millisecond, or the clock stands or goes back: run ahead of it rather than out of order.
      lastMs += 1
      count = 0
    }
    // One call for 512 ids: asking the kernel for each would cost more than everything else here.
    if (at + 8 > pool.length) {
      pool = randomBytes(4_096)
      at = 0
    }
    const high = lastMs.toString(16).padStart(12, '0')
    const tail = pool.subarray(at, at + 8)
    at += 8
    tail[0] = (tail[0]! & 0x3f) | 0x80
    const low = tail.toString('hex')
    return `${high.slice(0, 8)}-${high.slice(8)}-7${count.toString(16).padStart(3, '0')}-${low.slice(0, 4)}-${low.slice(4)}`
  }
}
