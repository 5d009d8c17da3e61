/**
 * Source tokens: the words and marks of a TypeScript or JavaScript text without blanks and comments, each with its
 * place. They suffice to find an option in an object literal; this is not a parser. Pure.
 */

export interface SourceToken {
  /** `text`: a string, whose `value` has no quotes. `other`: a number, template or regular expression. */
  readonly kind: 'word' | 'text' | 'mark' | 'other'
  readonly value: string
  readonly at: number
}

const blank = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y
const word = /[\p{ID_Start}$_#@][\p{ID_Continue}$]*/uy
const text = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y
const number = /\d[\w.]*/y
const pattern = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y

/** A value follows these tokens, so a slash after them begins a regular expression. */
const beforeValue = /^(?:return|typeof|case|in|of|do|else|void|await|yield|[([{,;:=!&|?+\-*%<>~^])$/

export function sourceTokens(source: string): SourceToken[] {
  const tokens: SourceToken[] = []
  let at = source.startsWith('#!') ? source.indexOf('\n') : 0
  const match = (form: RegExp) => {
    form.lastIndex = at
    return form.exec(source)?.[0]
  }
  const add = (kind: SourceToken['kind'], length: number, value = source.slice(at, at + length)) => {
    tokens.push({ kind, value, at })
    at += length
  }
  while (at >= 0 && at < source.length) {
    const skipped = match(blank)
    if (skipped !== undefined) at += skipped.length
    else if (source[at] === '`') add('other', templateEnd(source, at) - at)
    else {
      const found = match(text)
      const mayBePattern = source[at] === '/' && beforeValue.test(tokens.at(-1)?.value ?? ';')
      if (found !== undefined) add('text', found.length, found.slice(1, -1).replace(/\\(.)/g, '$1'))
      else if (match(word) !== undefined) add('word', match(word)!.length)
      else if (match(number) !== undefined) add('other', match(number)!.length)
      else if (mayBePattern && match(pattern) !== undefined) add('other', match(pattern)!.length)
      else add('mark', 1)
    }
  }
  return tokens
}

/** The end of the template that begins here, whatever its `${…}` contain. */
function templateEnd(source: string, begin: number): number {
  for (let at = begin + 1; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1
    else if (source[at] === '`') return at + 1
    else if (source.startsWith('${', at)) at = bracesEnd(source, at + 1) - 1
  }
  return source.length
}

function bracesEnd(source: string, begin: number): number {
  let depth = 0
  for (let at = begin; at < source.length; at += 1) {
    if (source[at] === '`') at = templateEnd(source, at) - 1
    else if (source[at] === '{') depth += 1
    else if (source[at] === '}' && --depth === 0) return at + 1
  }
  return source.length
}
