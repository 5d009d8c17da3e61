/** The log of a job: what its attempts wrote, one behind the other, of which the end is kept. Pure. */

/** What is kept of it, in bytes of UTF-8. */
export const mostLogBytes = 65_536

/** The log with more behind it: its last 64 KiB, from the start of a character on. */
export function joinedLog(log: string, more: string): string {
  // A character has at most three bytes for each unit of a string.
  if ((log.length + more.length) * 3 <= mostLogBytes) return log + more
  return lastText(Buffer.from(log + more), mostLogBytes)
}

/** The last so many bytes as text, from the start of a character on. */
export function lastText(bytes: Buffer, most: number): string {
  let from = Math.max(0, bytes.length - most)
  // The bytes of a character that follow its first: 10xxxxxx.
  while (from > 0 && from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from += 1
  return bytes.toString('utf8', from)
}
