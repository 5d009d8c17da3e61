/** The live display: bars that are redrawn in a terminal, a line a second anywhere else. */

import type { Depth } from 'millrace'

const barWidth = 30
const lineEveryMs = 1_000

export const figure = (n: number, digits = 0) =>
  n.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
export const seconds = (ms: number) => `${figure(ms / 1_000, 1)} s`

export class Display {
  readonly #out = process.stdout
  readonly #live = process.stdout.isTTY === true && process.env['TERM'] !== 'dumb'
  readonly #coloured = this.#live && !process.env['NO_COLOR']
  readonly #jobsOf: ReadonlyMap<string, number>
  readonly #startedAt = performance.now()
  #drawn = 0
  #nextLineAt = 0

  constructor(jobsOf: ReadonlyMap<string, number>) {
    this.#jobsOf = jobsOf
  }

  /** How often it is worth being told. */
  get everyMs(): number {
    return this.#live ? 100 : 250
  }

  show(depths: readonly Depth[], last: boolean): void {
    const ms = performance.now() - this.#startedAt
    const sum = (of: (depth: Depth) => number) => depths.reduce((total, depth) => total + of(depth), 0)
    const done = sum(({ processed }) => processed)
    const jobs = [...this.#jobsOf.values()].reduce((total, n) => total + n, 0)
    const perSecond = figure((done * 1_000) / Math.max(ms, 1))
    const totals = `${figure(done)} of ${figure(jobs)} done, ${perSecond}/s, ${figure(sum(({ running }) => running))} running, ${figure(sum(({ scheduled }) => scheduled))} for later, ${figure(sum(({ failed }) => failed))} failed once`
    if (this.#live) {
      this.#redraw([
        ...depths.map((depth) => this.#bar(depth)),
        `  ${totals}, ${seconds(ms)}`.slice(0, (this.#out.columns || 80) - 1),
      ])
      return
    }
    if (!last && ms < this.#nextLineAt) return
    this.#nextLineAt = ms + lineEveryMs
    const queues = depths.map(({ queue, processed }) => `${queue} ${figure(processed)}`)
    this.#out.write(`  ${seconds(ms).padStart(7)}  ${totals} (${queues.join(', ')})\n`)
  }

  #bar({ queue, processed, ready }: Depth): string {
    const jobs = this.#jobsOf.get(queue) ?? 0
    const part = jobs === 0 ? 1 : processed / jobs
    const full = Math.floor(part * barWidth)
    const bar = this.#colour('█'.repeat(full), 36) + this.#colour('░'.repeat(barWidth - full), 90)
    const left = ready > 0 ? `, ${figure(ready)} ready` : ''
    return `  ${queue.padEnd(8)} ${bar} ${figure(Math.floor(part * 100)).padStart(3)} %  ${figure(processed)}/${figure(jobs)}${left}`
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
