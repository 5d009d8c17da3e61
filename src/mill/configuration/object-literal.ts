/** Object literals in a source text: finds the place of the entry at a path of option names. Pure. */

/**
 * The object that is meant: the default export of the file, the argument of `millrace()`, or the argument of the
 * definition of the task of this name.
 */
export type LiteralRoot = 'default' | 'millrace' | { readonly task: string }

interface Entry {
  readonly key: string | undefined
  readonly at: number
  /** Index of the first token of its value; undefined for a method or a shorthand. */
  readonly value: number | undefined
}

interface Found {
  readonly at: number
  /** The number of steps of the path that lead here. */
  readonly depth: number
}

export interface SourcePlace {
  /** From 1. */
  readonly line: number
  readonly column: number
  readonly offset: number
  /** The number of steps of the path that lead here. */
  readonly depth: number
}

const opening = new Set(['(', '[', '{'])
const closing = new Set([')', ']', '}'])

/**
 * The deepest entry on the path that is written out; the object itself if there is none. Undefined if the object is
 * missing, not written out, or ambiguous.
 */
export function placeInSource(source: string, root: LiteralRoot, path: readonly string[]): SourcePlace | undefined {
  const literals = new Literals(sourceTokens(source))
  const [object, ...others] = literals.roots(root)
  if (object === undefined || others.length > 0) return undefined
  const { at, depth } = literals.follow(object, path)
  const before = source.slice(0, at)
  return { line: before.split('\n').length, column: at - before.lastIndexOf('\n'), offset: at, depth }
}

class Literals {
  readonly #tokens: readonly SourceToken[]

  constructor(tokens: readonly SourceToken[]) {
    this.#tokens = tokens
  }

  /** The first tokens of the objects that may be meant. */
  roots(root: LiteralRoot): number[] {
    if (root === 'default')
      return this.#all((i) => this.#is(i, 'export') && this.#is(i + 1, 'default')).flatMap((i) => this.#object(i + 2))
    if (root === 'millrace') return this.#arguments('millrace')
    const named = (object: number) => {
      const value = this.#entries(object).find(({ key }) => key === 'name')?.value
      return value !== undefined && this.#tokens[value]?.kind === 'text' && this.#tokens[value].value === root.task
    }
    return ['defineTask', 'defineOrderedTask'].flatMap((name) => this.#arguments(name)).filter(named)
  }

  /**
   * Follows the path. Names may contain dots and then cover several steps, so the way that leads deepest wins; of two
   * equal ones the later.
   */
  follow(begin: number, path: readonly string[]): Found {
    const here = { at: this.#tokens[begin]!.at, depth: 0 }
    const entries = this.#is(begin, '[') ? this.#elements(begin) : this.#entries(begin)
    const found = path.flatMap((_, i): Found[] => {
      const steps = i + 1
      // If a key appears twice, the last one counts.
      const entry = entries.findLast(({ key }) => key === path.slice(0, steps).join('.'))
      if (entry === undefined) return []
      const value = entry.value === undefined ? undefined : this.#value(entry.value)
      const inner = value === undefined ? undefined : this.follow(value, path.slice(steps))
      return [inner?.depth ? { at: inner.at, depth: steps + inner.depth } : { at: entry.at, depth: steps }]
    })
    const depth = Math.max(0, ...found.map((one) => one.depth))
    const [deepest = here, ...others] = found.filter((one) => one.depth === depth)
    return others.length > 0 ? here : deepest
  }

  /** The objects passed to calls of this function, with or without type arguments. */
  #arguments(name: string): number[] {
    const calls = this.#all(
      (i) => this.#is(i, name) && this.#tokens[i]!.kind === 'word' && !this.#is(i - 1, 'function'),
    )
    return calls.flatMap((i) => {
      let open = i + 1
      if (this.#is(open, '<')) while (open < this.#tokens.length && !this.#is(open, '(')) open += 1
      return this.#is(open, '(') ? this.#object(open + 1) : []
    })
  }

  #object(at: number): number[] {
    const value = this.#value(at)
    return value !== undefined && this.#is(value, '{') ? [value] : []
  }

  /** The opening brace or bracket of a value that is written out, here or in the only constant of this name. */
  #value(at: number): number | undefined {
    if (this.#is(at, '{') || this.#is(at, '[')) return at
    const { kind, value } = this.#tokens[at] ?? {}
    const isName =
      kind === 'word' && [',', '}', ')', 'satisfies', 'as', undefined].includes(this.#tokens[at + 1]?.value)
    if (!isName) return undefined
    const [constant, ...others] = this.#all((i) => this.#is(i, 'const') && this.#is(i + 1, value!))
    if (constant === undefined || others.length > 0) return undefined
    let equals = constant + 2
    while (equals < this.#tokens.length && !this.#is(equals, '=')) equals += 1
    return this.#is(equals + 1, '{') || this.#is(equals + 1, '[') ? equals + 1 : undefined
  }

  /** The entries that no later spread may replace. */
  #entries(object: number): Entry[] {
    const parts = this.#parts(object)
    return parts.slice(parts.findLastIndex((begin) => this.#isSpread(begin)) + 1).flatMap((begin) => {
      let i = begin
      const isKey = (at: number) => ['word', 'text', 'other'].includes(this.#tokens[at]?.kind ?? '')
      while ((/^(?:async|get|set)$/.test(this.#tokens[i]!.value) && isKey(i + 1)) || this.#is(i, '*')) i += 1
      const { value: key, at } = this.#tokens[i]!
      if (!isKey(i)) return []
      const isShorthand = this.#is(i + 1, ',') || this.#is(i + 1, '}')
      return [{ key, at, value: this.#is(i + 1, ':') ? i + 2 : isShorthand ? i : undefined }]
    })
  }

  /** The elements with a known position: none after a spread. */
  #elements(array: number): Entry[] {
    const parts = this.#parts(array)
    const spread = parts.findIndex((begin) => this.#isSpread(begin))
    const counted = spread === -1 ? parts : parts.slice(0, spread)
    return counted.map((begin, i) => ({ key: String(i), at: this.#tokens[begin]!.at, value: begin }))
  }

  #isSpread(at: number): boolean {
    return this.#is(at, '.') && this.#is(at + 1, '.')
  }

  /** The first tokens of the parts between commas. */
  #parts(open: number): number[] {
    const parts: number[] = []
    let depth = 0
    for (let i = open; i < this.#tokens.length; i += 1) {
      const { kind, value } = this.#tokens[i]!
      if (kind === 'mark' && closing.has(value) && --depth === 0) break
      const begins = depth === 1 && i > open && (i === open + 1 || this.#is(i - 1, ','))
      if (begins) parts.push(i)
      if (kind === 'mark' && opening.has(value)) depth += 1
    }
    return parts
  }

  #is(at: number, value: string): boolean {
    const token = this.#tokens[at]
    return token !== undefined && token.kind !== 'text' && token.value === value
  }

  #all(test: (at: number) => boolean): number[] {
    return this.#tokens.flatMap((_, i) => (test(i) ? [i] : []))
  }
}

interface SourceToken {
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

/**
 * The words and marks of a TypeScript or JavaScript text without blanks and comments, each with its place. They suffice
 * to find an option in an object literal; this is not a parser.
 */
function sourceTokens(source: string): SourceToken[] {
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
