/** The log of a job: the text that its attempts wrote, in order, of which the last part is kept. Pure. */

/** The kept size of a log, in bytes of UTF-8. */
export const mostLogBytes = 65_536

/** The log with more text appended: its last 64 KiB, cut at the start of a character. */
export function joinedLog(log: string, more: string): string {
  // A character has at most three bytes for each unit of a string.
  if ((log.length + more.length) * 3 <= mostLogBytes) return log + more
  return lastText(Buffer.from(log + more), mostLogBytes)
}

/** The last `most` bytes as text, cut at the start of a character. */
export function lastText(bytes: Buffer, most: number): string {
  let from = Math.max(0, bytes.length - most)
  // Continuation bytes of a character: 10xxxxxx.
  while (from > 0 && from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from += 1
  return bytes.toString('utf8', from)
}
