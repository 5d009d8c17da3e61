/** The terminal: prints the output of all commands, as lines for people or, with `--json`, as JSON for programs. */

import { once } from 'node:events'
import picocolors from 'picocolors'
import { recordJson } from '../../core/values/json.js'
import { printableJson } from '../printable.js'
import { timeOfDay } from './figures.js'

interface TerminalOptions {
  readonly json: boolean
}

export class Terminal {
  readonly json: boolean
  readonly colors: ReturnType<typeof picocolors.createColors>
  readonly #out = process.stdout
  #drawn = 0
  #readerGone = false

  constructor({ json }: TerminalOptions) {
    this.json = json
    const { NO_COLOR, TERM } = process.env
    this.colors = picocolors.createColors(this.live && !NO_COLOR && TERM !== 'dumb')
    this.#out.on('error', (error: NodeJS.ErrnoException) => {
      this.#readerGone ||= error.code === 'EPIPE'
    })
  }

  /** Whether the output is a terminal on which lines can be redrawn. */
  get live(): boolean {
    return this.#out.isTTY === true && !this.json
  }

  /** Width in columns; without a terminal, lines are not cut. */
  get columns(): number {
    return this.live ? this.#out.columns || 80 : Number.POSITIVE_INFINITY
  }

  /** Prints the value as one line of JSON with `--json`, otherwise the lines. */
  print(value: unknown, lines: () => readonly string[]): void {
    this.#write(this.json ? [jsonText(value)] : lines())
  }

  /** Prints many values, each as a line of JSON, whatever the flags say. Resolves when there is room for more. */
  async stream(values: readonly unknown[]): Promise<void> {
    if (this.#readerGone || values.length === 0) return
    if (!this.#out.write(`${values.map((value) => jsonText(value)).join('\n')}\n`)) await once(this.#out, 'drain')
  }

  /** Like `print`, but on a terminal it replaces the last drawing. */
  redraw(value: unknown, lines: () => readonly string[]): void {
    if (!this.live) {
      this.print(value, lines)
      return
    }
    const drawn = lines()
    // Moves up over the last drawing, then clears to the end of the screen.
    if (this.#drawn > 0) this.#out.write(`\u001b[${this.#drawn}A\u001b[J`)
    this.#drawn = drawn.length
    this.#write(drawn)
  }

  /** Prints an event of this process, as a line of its own. */
  event(event: string, fields: Readonly<Record<string, unknown>>, words: () => string): void {
    const at = new Date()
    this.print({ event, at: at.toISOString(), pid: process.pid, ...fields }, () => [
      `${this.colors.dim(`${timeOfDay(at)} ${process.pid}`)} ${words()}`,
    ])
  }

  #write(lines: readonly string[]): void {
    if (!this.#readerGone && lines.length > 0) this.#out.write(`${lines.join('\n')}\n`)
  }
}

/** A value as JSON that is safe to print. */
export function jsonText(value: unknown, indent?: number): string {
  return printableJson(recordJson(value, indent))
}
