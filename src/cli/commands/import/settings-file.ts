/** A settings file of Kale: the settings in its lines, and the lines that cannot be read. Pure. */

import { ConfigError } from '../../../core/errors.js'
import { defined } from '../../../core/values/defined.js'
import { type PythonValue, pythonValue } from './python-value.js'

export const mostSettingsBytes = 1_048_576

/** A note on one line, or on a setting that the file does not name. */
export interface ImportNote {
  /** From 1; absent for a setting that the file does not name. */
  readonly line?: number
  /**
   * `taken`: it is in the configuration. `left`: it has no counterpart, or belongs elsewhere. `unread`: a person must
   * decide.
   */
  readonly level: 'taken' | 'left' | 'unread'
  readonly setting?: string
  readonly text: string
}

export interface Setting {
  readonly value: PythonValue
  readonly line: number
}

/** By name. The last of several assignments counts, as in Python. */
export type Settings = ReadonlyMap<string, Setting>

/**
 * The text of a file. Throws `ConfigError`, with the line, if the file is not text. `path`: the name of the file in
 * messages.
 */
export function settingsText(bytes: Uint8Array, path: string): string {
  const refuse = (at: number, message: string): never => {
    const line = bytes.subarray(0, at).filter((byte) => byte === 0x0a).length + 1
    throw new ConfigError('the settings file', [{ path: `${path}:${line}`, message }])
  }
  const nul = bytes.indexOf(0)
  if (nul !== -1) return refuse(nul, 'holds a NUL character, which no Python file does')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return refuse(firstWrongByte(bytes), 'is no UTF-8; save the file as UTF-8')
  }
}

/** The settings. `fileName`: the last part of `__file__`. */
export function settingsIn(
  text: string,
  fileName: string,
): { readonly settings: Settings; readonly notes: readonly ImportNote[] } {
  const reading = new Reading(fileName)
  for (const statement of statementsIn(text)) reading.take(statement)
  return reading
}

/** Kale reads only names in capitals. */
const capitals = /^[A-Z][A-Z0-9_]*$/
const assignment = /^([A-Za-z_]\w*)\s*(?::\s*[\w.[\], |]+)?=(?!=)\s*(.*)$/s
const compound = /^(?:if|elif|else|for|while|try|except|finally|with|async|def|class)(?!\w)|^@/
/** Blocks whose assignments are not settings of the module. */
const inner = /^(?:async\s+def|def|class)(?!\w)|^@/
const silent = /^(?:pass|import\s[\w.,\s]+|[rRuU]?(?:'.*'|".*"))$/s
const imported = /^from\s+([\w.]+)\s+import\s+(.*)$/s
/** No person writes a longer expression. */
const longestExpression = 4_096

class Reading {
  readonly settings = new Map<string, Setting>()
  readonly notes: ImportNote[] = []
  readonly #names = new Map<string, PythonValue>()
  /** The indentation of the first statement: a file that is indented as a whole is read, too. */
  #base: number | undefined
  /** The statement that the indented ones belong to. */
  #block: PythonStatement | undefined

  constructor(fileName: string) {
    this.#names.set('__file__', { below: fileName })
  }

  take(statement: PythonStatement): void {
    const { indent, text } = statement
    this.#base ??= indent
    if (indent > this.#base) {
      this.#inBlock(statement, text)
      return
    }
    this.#block = compound.test(text) ? statement : undefined
    if (this.#block === undefined) this.#plain(statement)
    // `if DEBUG: AWS_REGION = 'us-west-2'`
    else this.#inBlock(statement, text.slice(text.indexOf(':') + 1).trim())
  }

  #plain(statement: PythonStatement): void {
    const { line, text } = statement
    const [, name, expression = ''] = assignment.exec(text) ?? []
    const read = name === undefined ? { unread: '' } : this.#valueOf(statement, expression)
    if (name !== undefined && 'value' in read) {
      this.#names.set(name, read.value)
      if (capitals.test(name)) this.settings.set(name, { value: read.value, line })
      return
    }
    // The values that it sets are no longer known.
    for (const target of this.#targetsIn(text)) {
      this.settings.delete(target)
      this.#names.delete(target)
    }
    if (name === undefined || !('unread' in read)) this.#other(statement)
    else if (capitals.test(name) || statement.fault !== undefined) this.#unread(line, name, read.unread)
  }

  #valueOf({ fault, lines }: PythonStatement, expression: string): ReturnType<typeof pythonValue> {
    if (fault !== undefined) return { unread: fault }
    if (lines > 1) return { unread: `goes on over ${lines} lines; write it in one` }
    if (expression.length > longestExpression) return { unread: `is longer than ${longestExpression} characters` }
    return pythonValue(expression, this.#names)
  }

  /** A statement in a block may be run or not. */
  #inBlock({ line, fault }: PythonStatement, text: string): void {
    const { line: from = line, text: header = '' } = this.#block ?? {}
    if (fault !== undefined) this.#unread(line, undefined, fault)
    if (fault !== undefined || inner.test(header)) return
    const where =
      this.#block === undefined ? 'is indented, but not in a block' : `is in a block that begins in line ${from}`
    const remedy = 'whether it is run is not known here: move it out of the block, or write it into the configuration'
    const named = this.#targetsIn(text).filter((name) => capitals.test(name))
    for (const name of named) this.#unread(line, name, `${where}; ${remedy}`)
    const module = settingsModuleIn(text)
    if (module !== undefined)
      this.#unread(line, undefined, `takes settings from the module ${module}, and ${where}; ${remedy}`)
  }

  /** A statement that does not assign to one name. */
  #other({ line, text, fault }: PythonStatement): void {
    const module = settingsModuleIn(text)
    if (fault !== undefined) this.#unread(line, undefined, fault)
    else if (module !== undefined)
      this.#unread(line, undefined, `takes settings from the module ${module}, which is not read`)
    else if (!silent.test(text) && !imported.test(text))
      this.#unread(
        line,
        undefined,
        'is no assignment to a name; if it changes a setting, write that into the configuration',
      )
  }

  /**
   * The names that a statement may set or delete: those before its last `=`. Words within a text count only if they
   * were settings before.
   */
  #targetsIn(text: string): string[] {
    const end = /^del\s/.test(text) ? text.length : [...text.matchAll(/(?<![=!<>:])=(?!=)/g)].at(-1)?.index
    const left = text.slice(0, end ?? 0)
    const isQuoted = /['"]/.test(left)
    return [...new Set(left.match(/[A-Za-z_]\w*/g))].filter((name) => !isQuoted || this.#names.has(name))
  }

  #unread(line: number, setting: string | undefined, text: string): void {
    this.notes.push({ line, level: 'unread', ...defined({ setting }), text })
  }
}

/** The module from which an import takes settings; undefined for another statement. */
function settingsModuleIn(text: string): string | undefined {
  const [, module, names = ''] = imported.exec(text) ?? []
  return /\*|\b[A-Z][A-Z0-9_]*\b/.test(names) ? module : undefined
}

/** The offset of the line that holds the first invalid UTF-8 byte. */
function firstWrongByte(bytes: Uint8Array): number {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(0x0a, from)
    const to = end === -1 ? bytes.length : end + 1
    try {
      decoder.decode(bytes.subarray(from, to))
    } catch {
      return from
    }
    from = to
  }
  return 0
}

/** A statement of Python, as line ends, quotes and brackets bound it. No Python is run. */
interface PythonStatement {
  /** The line where it begins, from 1. */
  readonly line: number
  /** The number of its lines. */
  readonly lines: number
  /** The number of spaces and tabs before it. */
  readonly indent: number
  /** The text without comments; the lines of one statement are separated by line breaks. */
  readonly text: string
  /** The reason why it is not a statement, as a predicate. */
  readonly fault?: string
}

/**
 * The statements, first to last. An unclosed quote makes its line a statement with a fault; other unclosed parts extend
 * to the end of the text.
 */
function statementsIn(text: string): PythonStatement[] {
  const statements: PythonStatement[] = []
  let open: OpenStatement | undefined
  for (const [i, line] of text.split(/\r\n|[\r\n]/).entries()) {
    if (open === undefined && /^\s*(?:#|$)/.test(line)) continue
    open ??= new OpenStatement(i + 1, line)
    if (open.take(line)) continue
    statements.push(open.statement())
    open = undefined
  }
  return open === undefined ? statements : [...statements, open.statement()]
}

/** A statement that is being read, line by line. */
class OpenStatement {
  readonly #line: number
  readonly #indent: number
  readonly #parts: string[] = []
  #quote: string | undefined
  #depth = 0
  #goesOn = false
  #fault: string | undefined

  constructor(line: number, first: string) {
    this.#line = line
    this.#indent = first.length - first.trimStart().length
  }

  /** Adds a line; returns whether the statement goes on in the next line. */
  take(line: string): boolean {
    let end = line.length
    let at = 0
    this.#goesOn = false
    for (; at < end; at += 1) {
      const char = line[at]!
      // The character after it is literal, or is the line break.
      if (char === '\\') {
        this.#goesOn = at === end - 1
        at += 1
      } else if (this.#quote !== undefined) {
        if (!line.startsWith(this.#quote, at)) continue
        at += this.#quote.length - 1
        this.#quote = undefined
      } else if (char === '#') end = at
      else if (char === '"' || char === "'") {
        this.#quote = line.startsWith(char.repeat(3), at) ? char.repeat(3) : char
        at += this.#quote.length - 1
      } else if ('([{'.includes(char)) this.#depth += 1
      else if (')]}'.includes(char)) this.#depth -= 1
    }
    this.#parts.push(line.slice(0, end))
    if (this.#depth < 0) return this.#refuse('closes a bracket that is not open')
    if (this.#quote?.length === 1 && !this.#goesOn) return this.#refuse('has a quote that is not closed')
    this.#goesOn ||= this.#quote !== undefined || this.#depth > 0
    return this.#goesOn
  }

  statement(): PythonStatement {
    const text = this.#parts.join('\n').trim()
    const unclosed = this.#goesOn ? 'is not closed: nothing from here to the end of the file is read' : undefined
    const fault = this.#fault ?? unclosed
    const place = { line: this.#line, lines: this.#parts.length, indent: this.#indent }
    return { ...place, text, ...defined({ fault }) }
  }

  #refuse(fault: string): false {
    this.#fault = fault
    return false
  }
}
