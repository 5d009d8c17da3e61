/** The tail of a log: its new text since the last look, and its last lines. Pure. */

/**
 * The text of the log after the part that was seen. Only the end of a log is kept, so its beginning may have been
 * dropped: the log then begins somewhere within the seen text. `isGap`: it begins later, so some text in between was
 * never seen.
 */
export function newIn(seen: string, log: string): { readonly text: string; readonly isGap: boolean } {
  if (log.startsWith(seen)) return { text: log.slice(seen.length), isGap: false }
  const known = overlap(seen, log)
  return { text: log.slice(known), isGap: known === 0 }
}

/** The lines of a text; a final line break adds no empty line. */
export function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split('\n')
}

/**
 * The length of the longest end of `a` that `b` begins with, by the Knuth–Morris–Pratt search: linear even for logs
 * that repeat themselves.
 */
function overlap(a: string, b: string): number {
  const borders = new Int32Array(b.length)
  for (let i = 1, length = 0; i < b.length; i += 1) {
    while (length > 0 && b[i] !== b[length]) length = borders[length - 1]!
    if (b[i] === b[length]) length += 1
    borders[i] = length
  }
  let matched = 0
  for (let i = Math.max(0, a.length - b.length); i < a.length; i += 1) {
    while (matched > 0 && a[i] !== b[matched]) matched = borders[matched - 1]!
    if (a[i] === b[matched]) matched += 1
  }
  return matched
}
