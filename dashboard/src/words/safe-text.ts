/** The safe text: text from elsewhere as it can be shown without lying: nothing in it is invisible or turns the line around. */

/** What is invisible, or turns the writing round, or is half a sign. */
const unseen = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/gu

/** Each sign that cannot be seen as `\u202e`, one beyond those four digits as `\u{e0041}`. */
export function safeText(text: string): string {
  return text.replace(unseen, (sign) => {
    const code = sign.codePointAt(0)!.toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
}

/** Text with lines and tabs of its own, as of a log. */
export function safeLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.split('\t').map(safeText).join('\t'))
    .join('\n')
}

/** At most `most` characters: what is longer loses its middle. */
export function shortText(text: string, most = 40): string {
  const signs = [...text]
  if (signs.length <= most) return text
  const end = Math.floor((most - 1) / 2)
  return `${signs.slice(0, most - 1 - end).join('')}…${signs.slice(-end).join('')}`
}
