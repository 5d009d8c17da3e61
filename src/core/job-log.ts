/** The log of a job: what its attempts wrote, one behind the other, of which the end is kept. Pure. */

/** What is kept of it, in bytes of UTF-8. */
export const mostLogBytes = 65_536

/** The log with more behind it: its last 64 KiB, from the start of a character on. */
export function joinedLog(log: string, more: string): string {
  // A character has at most three bytes for each unit of a string.
  if ((log.length + more.length) * 3 <= mostLogBytes) return log + more
  const bytes = Buffer.from(log + more)
  let from = Math.max(0, bytes.length - mostLogBytes)
  if (from === 0) return log + more
  // The bytes of a character that follow its first: 10xxxxxx.
  while (from < bytes.length && (bytes[from]! & 0xc0) === 0x80) from += 1
  return bytes.toString('utf8', from)
}
