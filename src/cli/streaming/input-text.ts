/**
 * Input text: the bytes of standard input as numbered lines, or those of a whole file as one text. Bytes that are not
 * UTF-8 are refused, with the form that they probably have.
 */

import { UsageError } from '../process/exit-code.js'

export interface NumberedLine {
  /** From 1. */
  readonly number: number
  readonly text: string
}

/** Larger than any job: a stream without line breaks must not fill the memory. */
const longestLine = 16_777_216

/**
 * The lines in batches as they arrive, of which one at a time is in memory. Complete lines are passed on at once, so a slow writer need not wait. Blank lines are counted and left out. Throws
 * `UsageError` for a line that is too long, for bytes that are not UTF-8, and for a compressed file.
 */
export async function* numberedLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<NumberedLine[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let [number, rest] = [0, '']
  const numbered = (texts: readonly string[]): NumberedLine[] =>
    texts.map((text) => ({ number: ++number, text })).filter(({ text }) => text.trim() !== '')
  const decoded = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      throw new UsageError(
        `standard input is no UTF-8 behind line ${number}; nothing of it was enqueued from there on. If it is Latin-1, convert it first: \`iconv -f latin1 -t utf-8\`.`,
      )
    }
  }
  let isFirst = true
  for await (const chunk of bytes) {
    if (isFirst) refuseForeignForm(chunk, 'standard input')
    isFirst = false
    const texts = (rest + decoded(chunk)).split('\n')
    rest = texts.pop()!
    if (rest.length > longestLine)
      throw new UsageError(
        `line ${number + texts.length + 1} is longer than ${longestLine} characters: one job is one line of JSON.`,
      )
    const lines = numbered(texts)
    if (lines.length > 0) yield lines
  }
  const last = numbered([rest + decoded()])
  if (last.length > 0) yield last
}

/** The first bytes of other forms, and what turns them into UTF-8. */
const forms: readonly (readonly [first: readonly number[], form: string, remedy: string])[] = [
  [[0xff, 0xfe], 'UTF-16', 'iconv -f utf-16 -t utf-8'],
  [[0xfe, 0xff], 'UTF-16', 'iconv -f utf-16 -t utf-8'],
  [[0x1f, 0x8b], 'compressed by gzip', 'gunzip -c'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed by Zstandard', 'zstd -dc'],
  [[0x50, 0x4b, 0x03, 0x04], 'a ZIP archive', 'unzip -p'],
]

/** Throws `UsageError` if these first bytes of `what` are those of UTF-16 or of a compressed file. */
function refuseForeignForm(bytes: Uint8Array, what: string): void {
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
