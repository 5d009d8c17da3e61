/** Literals of TypeScript, for the programs that commands write. Pure. */

/** The text between single quotes. */
export function literal(text: string): string {
  return `'${literalText(text).replaceAll("'", "\\'")}'`
}

/** The text escaped for both kinds of literals, except for their quotes: backslashes, line ends and lone surrogates. */
export function literalText(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replace(/[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`)
}
