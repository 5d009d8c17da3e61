/** The safe text: text from elsewhere in a form that cannot deceive: no character is invisible or reverses the line. */

/** Characters that are invisible, reverse the writing direction, or are half a pair. */
const unseen = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/gu

/** Writes each invisible character as `\u202e`, beyond four digits as `\u{e0041}`. */
export function safeText(text: string): string {
  return text.replace(unseen, (sign) => {
    const code = sign.codePointAt(0)!.toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })
}

/** The same for text with line breaks and tabs of its own, such as a log. */
export function safeLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.split('\t').map(safeText).join('\t'))
    .join('\n')
}

/** At most `most` characters; a longer text loses its middle. */
export function shortText(text: string, most = 40): string {
  const signs = [...text]
  if (signs.length <= most) return text
  const end = Math.floor((most - 1) / 2)
  return `${signs.slice(0, most - 1 - end).join('')}…${signs.slice(-end).join('')}`
}
