/** Python statements: a text cut into its statements by line ends, quotes and brackets. No Python is run. Pure. */

export interface PythonStatement {
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
export function statementsIn(text: string): PythonStatement[] {
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
    return { ...place, text, ...(fault !== undefined && { fault }) }
  }

  #refuse(fault: string): false {
    this.#fault = fault
    return false
  }
}
