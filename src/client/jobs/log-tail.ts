/** The tail of a log: what is new in it since it was last seen, and its last lines. Pure. */

/**
 * What stands in the log behind what was seen of it. Of a log only the end is kept: where it has moved on, its beginning is
 * found again at the end of what was seen. `isGap`: nowhere, so something between the two was never seen.
 */
export function newIn(seen: string, log: string): { readonly text: string; readonly isGap: boolean } {
  if (log.startsWith(seen)) return { text: log.slice(seen.length), isGap: false }
  const known = overlap(seen, log)
  return { text: log.slice(known), isGap: known === 0 }
}

/** The lines of a text, without one behind its last line break. */
export function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split('\n')
}

/** Length of the longest end of `a` that `b` begins with, by the search of Knuth, Morris and Pratt: linear also for logs that repeat themselves. */
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
