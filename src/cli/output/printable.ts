/** Printable text: what others wrote (ids, task names, errors, payloads), made safe and short enough for a terminal. */

/** The characters that keep an emoji together: a joiner between two, and the sign that one is to be shown as such. */
const emojiParts =
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})|(?<=\\p{Extended_Pictographic})\\ufe0f'
/**
 * Control characters, line separators and marks that reverse the direction of text are commands in a terminal. Characters
 * that take no room let two different ids look the same.
 */
const commands = new RegExp(
  `(?!${emojiParts})[\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\p{Cf}\\p{Default_Ignorable_Code_Point}]`,
  'gu',
)

const shortNames: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** One line in which every such character is written out: `\n`, `\u001b`. */
export function printable(text: string): string {
  return text.toWellFormed().replace(commands, (char) => shortNames[char] ?? escaped(char))
}

/** The same, but line breaks stay. */
export function printableLines(text: string): string {
  return text.split(/\r?\n/).map(printable).join('\n')
}

/** JSON that shows no command either: but for the line breaks of its layout, such characters can only stand in its strings. */
export function printableJson(json: string): string {
  return json.replace(commands, (char) => (char === '\n' ? char : escaped(char)))
}

/** Each half of a pair of surrogates by itself, as JSON has it. */
function escaped(char: string): string {
  return char
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

/** East Asian wide and full-width forms, and emoji: two columns each. */
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
const combining = /\p{Mark}|\u200d/u
const ascii = /^[\x20-\x7e]*$/

/** How many columns a printable text takes. */
export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length
  let width = 0
  for (const char of text) width += combining.test(char) ? 0 : wide.test(char) ? 2 : 1
  return width
}

/** The text in at most so many columns, `…` at the end of one that was longer. */
export function shortened(text: string, most: number): string {
  if (text.length <= most && widthOf(text) <= most) return text
  let width = 0
  let kept = ''
  for (const char of text) {
    width += widthOf(char)
    if (width > most - 1) break
    kept += char
  }
  return most < 1 ? '' : `${kept}…`
}
