/** The live display: bars that are redrawn in a terminal, a line a second anywhere else. */

const barWidth = 30
const lineEveryMs = 1_000

export const figure = (n: number, digits = 0) =>
  n.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
export const say = (line: string) => process.stdout.write(`${line}\n`)
export const seconds = (ms: number) => `${figure(ms / 1_000, 1)} s`

/** How far one thing is. */
export interface Bar {
  readonly name: string
  readonly done: number
  readonly of: number
  readonly ready: number
}

export class Display {
  readonly #out = process.stdout
  readonly #live = process.stdout.isTTY === true && process.env['TERM'] !== 'dumb'
  readonly #coloured = this.#live && !process.env['NO_COLOR']
  readonly #startedAt = performance.now()
  #drawn = 0
  #nextLineAt = 0

  /** How often it is worth being told. */
  get everyMs(): number {
    return this.#live ? 100 : 250
  }

  /** `more`: what else there is to say. */
  show(bars: readonly Bar[], more: string, last: boolean): void {
    const ms = performance.now() - this.#startedAt
    const sum = (of: (bar: Bar) => number) => bars.reduce((total, bar) => total + of(bar), 0)
    const done = sum((bar) => bar.done)
    const perSecond = figure((done * 1_000) / Math.max(ms, 1))
    const totals = `${figure(done)} of ${figure(sum((bar) => bar.of))} done, ${perSecond}/s, ${more}`
    if (this.#live) {
      const line = `  ${totals}, ${seconds(ms)}`.slice(0, (this.#out.columns || 80) - 1)
      this.#redraw([...bars.map((bar) => this.#bar(bar)), line])
      return
    }
    if (!last && ms < this.#nextLineAt) return
    this.#nextLineAt = ms + lineEveryMs
    const each = bars.length > 1 ? ` (${bars.map((bar) => `${bar.name} ${figure(bar.done)}`).join(', ')})` : ''
    this.#out.write(`  ${seconds(ms).padStart(7)}  ${totals}${each}\n`)
  }

  #bar({ name, done, of, ready }: Bar): string {
    const part = of === 0 ? 1 : done / of
    const full = Math.floor(part * barWidth)
    const bar = this.#colour('█'.repeat(full), 36) + this.#colour('░'.repeat(barWidth - full), 90)
    const left = ready > 0 ? `, ${figure(ready)} ready` : ''
    return `  ${name.padEnd(8)} ${bar} ${figure(Math.floor(part * 100)).padStart(3)} %  ${figure(done)}/${figure(of)}${left}`
  }

  #colour(text: string, code: number): string {
    return this.#coloured ? `\u001b[${code}m${text}\u001b[39m` : text
  }

  #redraw(lines: readonly string[]): void {
    // Up to the first line drawn, then each line anew: erasing all at once would flicker.
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : ''
    this.#drawn = lines.length
    this.#out.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join('')}`)
  }
}
