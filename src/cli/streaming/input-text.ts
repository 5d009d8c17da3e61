/** Input text: bytes of a file or of standard input as UTF-8, or the form that they probably have instead. */

import { UsageError } from '../output/exit-code.js'

/** The first bytes of other forms, and what turns them into UTF-8. */
const forms: readonly (readonly [first: readonly number[], form: string, remedy: string])[] = [
  [[0xff, 0xfe], 'UTF-16', 'iconv -f utf-16 -t utf-8'],
  [[0xfe, 0xff], 'UTF-16', 'iconv -f utf-16 -t utf-8'],
  [[0x1f, 0x8b], 'compressed by gzip', 'gunzip -c'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed by Zstandard', 'zstd -dc'],
  [[0x50, 0x4b, 0x03, 0x04], 'a ZIP archive', 'unzip -p'],
]

/** Throws `UsageError` if these first bytes of `what` are those of UTF-16 or of a compressed file. */
export function refuseForeignForm(bytes: Uint8Array, what: string): void {
  const known = forms.find(([first]) => first.every((byte, i) => bytes[i] === byte))
  if (known !== undefined)
    throw new UsageError(`${what} is ${known[1]}, and must be UTF-8: convert it first, such as by \`${known[2]}\`.`)
  // Without a byte order mark, as some programs write it: every second byte of its first letter is zero.
  if (bytes.length > 1 && (bytes[0] === 0) !== (bytes[1] === 0))
    throw new UsageError(
      `${what} is UTF-16 without a byte order mark, and must be UTF-8: convert it first, such as by \`iconv -f utf-16${bytes[0] === 0 ? 'be' : 'le'} -t utf-8\`.`,
    )
}

/** The text of all bytes of `what`, without a byte order mark. Throws `UsageError` for bytes that are not UTF-8. */
export function textOf(bytes: Uint8Array, what: string): string {
  refuseForeignForm(bytes, what)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError(`${what} is no UTF-8; if it is Latin-1, convert it first: \`iconv -f latin1 -t utf-8\`.`)
  }
}
