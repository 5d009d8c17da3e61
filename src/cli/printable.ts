/** Printable text: foreign text (ids, task names, errors, payloads), made safe and short enough for a terminal. */

/** The characters that hold an emoji together: the joiner, and the sign that selects the emoji form. */
const emojiParts =
  '(?<=[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d(?=\\p{Extended_Pictographic})|(?<=\\p{Extended_Pictographic})\\ufe0f'
/**
 * Characters to write out. Control characters, line separators and direction marks are commands in a terminal.
 * Characters of no width make different ids look the same.
 */
const commands = new RegExp(
  `(?!${emojiParts})[\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\p{Cf}\\p{Default_Ignorable_Code_Point}]`,
  'gu',
)

const shortNames: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** The text in one line, with every such character written out: `\n`, `\u001b`. */
export function printable(text: string): string {
  return text.toWellFormed().replace(commands, (char) => shortNames[char] ?? escaped(char))
}

/** The same, but line breaks stay. */
export function printableLines(text: string): string {
  return text.split(/\r?\n/).map(printable).join('\n')
}

/** JSON without such characters. Except for the line breaks of its layout, they can only occur in its strings. */
export function printableJson(json: string): string {
  return json.replace(commands, (char) => (char === '\n' ? char : escaped(char)))
}

/** Each half of a surrogate pair by itself, as in JSON. */
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

/** The width of a printable text in columns. */
export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length
  let width = 0
  for (const char of text) width += combining.test(char) ? 0 : wide.test(char) ? 2 : 1
  return width
}

/** The text in at most `most` columns, with `…` at the end if it was longer. */
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
