/**
 * A Python value: a literal, a look-up in the environment, or a path from the settings file, read from the text of an
 * expression. No other Python expression is read. Pure.
 */

export type PythonValue = string | number | boolean | null | Lookup | SettingsPath | readonly PythonValue[]

/** `os.getenv('X', 'y')`: decided at the start of the program, and so it stays a look-up. */
export interface Lookup {
  readonly variable: string
  readonly otherwise?: string | number
}

/** A path relative to the folder of the settings file: `os.path.join(os.path.dirname(__file__), 'x')` is `x`. */
interface SettingsPath {
  readonly below: string
}

/** The values of names that an expression may use, `__file__` among them. */
type PythonNames = ReadonlyMap<string, PythonValue>

/** The value of an expression. The error is a predicate and shows nothing of the text, which may be a secret. */
export function pythonValue(
  text: string,
  names: PythonNames,
): { readonly value: PythonValue } | { readonly unread: string } {
  try {
    return { value: new Expression(text, names).whole() }
  } catch (error) {
    if (error instanceof NotRead) return { unread: error.message }
    throw error
  }
}

export function isLookup(value: PythonValue): value is Lookup {
  return typeof value === 'object' && value !== null && 'variable' in value
}

export function isSettingsPath(value: PythonValue): value is SettingsPath {
  return typeof value === 'object' && value !== null && 'below' in value
}

class NotRead extends Error {}

function unread(why: string): never {
  throw new NotRead(why)
}

/** A deeper value is not a setting. */
const mostDepth = 16
const opening = /([A-Za-z]{0,2})('''|"""|'|")/y
const dotted = /[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*/y
const number =
  /0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|(?:\d(?:_?\d)*)?\.\d(?:_?\d)*(?:[eE][+-]?\d+)?|\d(?:_?\d)*\.?(?:[eE][+-]?\d+)?/y
const backslashed =
  /\\(?:([\\'"abfnrtv])|([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|\n|([NxuU])|(.))/gs
const escaped: Readonly<Record<string, string>> = {
  ...{ '\\': '\\', "'": "'", '"': '"', a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
}
const constants: PythonNames = new Map<string, PythonValue>([
  ['True', true],
  ['False', false],
  ['None', null],
])

/** The functions whose value is known without running them; undefined for unsuitable arguments. */
const functions: Readonly<Record<string, (args: readonly PythonValue[]) => PythonValue | undefined>> = {
  'os.getenv': lookup,
  'os.environ.get': lookup,
  'os.path.join': joined,
  'os.path.dirname': ([path]) =>
    path !== undefined && isSettingsPath(path) ? { below: above(path.below) } : undefined,
  'os.path.abspath': samePath,
  'os.path.realpath': samePath,
  int: ([of]) => wholeOf(of),
  str: ([of]) => (typeof of === 'string' || (of !== undefined && of !== null && isLookup(of)) ? of : undefined),
}

/** One expression, read from left to right. */
class Expression {
  readonly #text: string
  readonly #names: PythonNames
  #at = 0
  #depth = 0

  constructor(text: string, names: PythonNames) {
    this.#text = text
    this.#names = names
  }

  whole(): PythonValue {
    const value = this.#product()
    this.#space()
    if (this.#at === this.#text.length) return value
    return unread(this.#text[this.#at] === ';' ? 'is one of two statements in a line' : 'is computed')
  }

  #product(): PythonValue {
    let value = this.#atom()
    while (this.#sees('*') && this.#text[this.#at] !== '*') {
      const next = this.#atom()
      if (typeof value !== 'number' || typeof next !== 'number') return unread('is computed')
      value *= next
    }
    return value
  }

  #atom(): PythonValue {
    this.#space()
    if (this.#sees('-')) {
      const value = this.#atom()
      return typeof value === 'number' ? -value : unread('is computed')
    }
    if (this.#sees('(')) return this.#inParentheses()
    if (this.#sees('[')) return this.#items(']').list
    if (this.#matches(opening) !== undefined) return this.#strings()
    const digits = this.#taken(number)
    if (digits !== undefined) return numberOf(digits[0])
    const name = this.#taken(dotted)?.[0].replace(/\s/g, '')
    if (name === undefined)
      return unread(this.#at === this.#text.length ? 'has no value' : 'has a value of a form that is not read')
    return this.#named(name)
  }

  /** A value in parentheses, or a tuple if there is a comma. */
  #inParentheses(): PythonValue {
    const { list, commas } = this.#items(')')
    return list.length === 1 && commas === 0 ? list[0]! : list
  }

  #items(close: string): { readonly list: PythonValue[]; readonly commas: number } {
    this.#depth += 1
    if (this.#depth > mostDepth) return unread(`is nested more than ${mostDepth} deep`)
    const list: PythonValue[] = []
    let commas = 0
    while (!this.#sees(close)) {
      if (list.length > commas) return unread('has a value of a form that is not read')
      // The keyword has the same meaning in all functions read here.
      this.#taken(/\s*default\s*=(?!=)/y)
      list.push(this.#product())
      if (this.#sees(',')) commas += 1
    }
    this.#depth -= 1
    return { list, commas }
  }

  #named(name: string): PythonValue {
    // `from os import environ, getenv`
    const full = /^(?:getenv|environ|environ\.get)$/.test(name) ? `os.${name}` : name
    if (full === 'os.environ' && this.#sees('[')) {
      const { list } = this.#items(']')
      return lookup(list) ?? unread('looks something up in a form that is not read')
    }
    if (this.#sees('(')) {
      const known = Object.hasOwn(functions, full) ? functions[full] : undefined
      if (known === undefined) return unread('calls a function, and no Python is run')
      return known(this.#items(')').list) ?? unread('calls a function with arguments that are not read')
    }
    const value = constants.get(name) ?? this.#names.get(name)
    if (value !== undefined || name === 'None') return value ?? null
    return unread('is computed from a name whose value is not known')
  }

  /** Adjacent strings are one. */
  #strings(): string {
    let text = ''
    for (;;) {
      this.#space()
      const match = this.#taken(opening)
      if (match === undefined) return text
      text += this.#string(match[1]!.toLowerCase(), match[2]!)
    }
  }

  #string(prefix: string, quote: string): string {
    if (prefix.includes('f')) return unread('is a formatted string, which is computed')
    if (!['', 'r', 'u'].includes(prefix)) return unread('is no text')
    const from = this.#at
    for (; !this.#text.startsWith(quote, this.#at); this.#at += 1) {
      if (this.#at >= this.#text.length) return unread('has a quote that is not closed')
      if (this.#text[this.#at] === '\\') this.#at += 1
    }
    const inner = this.#text.slice(from, this.#at)
    this.#at += quote.length
    return prefix === 'r' ? inner : inner.replace(backslashed, unescaped)
  }

  #space(): void {
    this.#taken(/\s*/y)
  }

  /** Passes this character if it comes next, after any space; returns whether it did. */
  #sees(char: string): boolean {
    this.#space()
    if (this.#text[this.#at] !== char) return false
    this.#at += 1
    return true
  }

  #matches(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at
    return form.exec(this.#text) ?? undefined
  }

  #taken(form: RegExp): RegExpExecArray | undefined {
    const match = this.#matches(form)
    if (match !== undefined) this.#at += match[0].length
    return match
  }
}

function numberOf(digits: string): number {
  if (/^0\d/.test(digits) && !/^0+$/.test(digits)) return unread('is no number that Python takes')
  const value = Number(digits.replaceAll('_', ''))
  return Number.isFinite(value) ? value : unread('is a number that is too large')
}

function unescaped(whole: string, ...groups: (string | undefined)[]): string {
  const [short, octal, byte, four, eight, named, other] = groups
  if (short !== undefined) return escaped[short]!
  if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
  const code = byte ?? four ?? eight
  if (code !== undefined) {
    const point = Number.parseInt(code, 16)
    return point > 0x10ffff ? unread('has a wrong escape in its text') : String.fromCodePoint(point)
  }
  if (named !== undefined) return unread('has an escape in its text that is not read')
  // Python keeps the backslash of an unknown escape, and drops that of a line break.
  return other === undefined ? '' : whole
}

function lookup([variable, otherwise]: readonly PythonValue[]): Lookup | undefined {
  if (typeof variable !== 'string' || variable === '') return undefined
  if (otherwise === undefined || otherwise === null) return { variable }
  return typeof otherwise === 'string' || typeof otherwise === 'number' ? { variable, otherwise } : undefined
}

function wholeOf(of: PythonValue | undefined): number | Lookup | undefined {
  if (typeof of === 'string' && /^\s*[+-]?\d+\s*$/.test(of)) return Number(of)
  if (typeof of === 'number') return Math.trunc(of)
  return of !== undefined && isLookup(of) ? of : undefined
}

/** Joined as in Python: an absolute part starts anew. */
function joined(parts: readonly PythonValue[]): string | SettingsPath | undefined {
  const [first, ...rest] = parts
  if (first === undefined || !rest.every((part) => typeof part === 'string')) return undefined
  const isBelow = isSettingsPath(first)
  if (!isBelow && typeof first !== 'string') return undefined
  const start = isBelow ? first.below : first
  const path = rest.reduce(
    (all, part) => (part.startsWith('/') ? part : all === '' || all.endsWith('/') ? all + part : `${all}/${part}`),
    start,
  )
  return isBelow && !path.startsWith('/') ? { below: path } : path
}

function samePath([path]: readonly PythonValue[]): PythonValue | undefined {
  return typeof path === 'string' || (path !== undefined && isSettingsPath(path)) ? path : undefined
}

/** The parent folder of a path. */
function above(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  const last = parts.at(-1)
  return last === undefined || last === '..' ? [...parts, '..'].join('/') : parts.slice(0, -1).join('/') || '.'
}
