/** Numbered lines: the lines of a byte stream, in batches as they arrive, of which one at a time is in memory. */

import { UsageError } from '../output/exit-code.js'
import { refuseForeignForm } from './input-text.js'

export interface NumberedLine {
  /** From 1. */
  readonly number: number
  readonly text: string
}

/** Larger than any job: a stream without line breaks must not fill the memory. */
const longestLine = 16_777_216

/**
 * Complete lines are passed on at once, so a slow writer need not wait. Blank lines are counted and left out. Throws
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
