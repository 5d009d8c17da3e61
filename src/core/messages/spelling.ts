/** The spelling check: finds the word that was probably meant. Pure. */

/** The one of `words` that is at most two letters off; undefined if none is, or several are. */
export function probablyMeant(word: string, words: readonly string[]): string | undefined {
  const most = word.length < 4 ? 1 : 2
  const near = words
    .map((one) => ({ one, off: lettersOff(word.toLowerCase(), one.toLowerCase()) }))
    .sort((a, b) => a.off - b.off)
  const [first, second] = near
  if (first === undefined || first.off > most || first.off === second?.off) return undefined
  return first.one
}

/** The number of letters that are added, left out, replaced, or swapped with their neighbour. */
export function lettersOff(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? rows[i - 2]![j - 2]! + 1 : replaced
      row.push(Math.min(replaced, swapped, rows[i - 1]![j]! + 1, row[j - 1]! + 1))
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
