/** A progress bar: one line on standard error that is redrawn on a terminal. */

import { fstatSync } from 'node:fs'
import picocolors from 'picocolors'
import { count, rate } from '../output/figures.js'

const everyMs = 100
const width = 24

export class ProgressBar {
  readonly #begunAt = performance.now()
  readonly #total: number | undefined
  readonly #colors: ReturnType<typeof picocolors.createColors>
  readonly #live: boolean
  #drawnAt = Number.NEGATIVE_INFINITY

  /** `total`: the number of bytes, if it is known. */
  constructor(total: number | undefined, isQuiet: boolean) {
    const { NO_COLOR, TERM } = process.env
    this.#total = total
    this.#live = process.stderr.isTTY === true && !isQuiet && TERM !== 'dumb'
    this.#colors = picocolors.createColors(this.#live && !NO_COLOR)
  }

  show(lines: number, bytes: number): void {
    const now = performance.now()
    if (!this.#live || now - this.#drawnAt < everyMs) return
    this.#drawnAt = now
    process.stderr.write(
      `\r\u001b[K${progressText({ lines, bytes, total: this.#total, ms: now - this.#begunAt }, this.#colors.green)}`,
    )
  }

  clear(): void {
    if (this.#live) process.stderr.write('\r\u001b[K')
  }
}

/** Pure. `paint`: colours the part that is done. */
export function progressText(
  { lines, bytes, total, ms }: { lines: number; bytes: number; total: number | undefined; ms: number },
  paint: (text: string) => string = (text) => text,
): string {
  const figures = `${count(lines)} lines, ${rate(lines, ms)}/s`
  if (total === undefined || total === 0) return figures
  const done = Math.min(1, bytes / total)
  const full = Math.round(done * width)
  return `${paint('█'.repeat(full))}${'░'.repeat(width - full)} ${Math.floor(done * 100)} %  ${figures}`
}

/** The size of standard input if it is a file. */
export function inputSize(): number | undefined {
  try {
    const stat = fstatSync(0)
    return stat.isFile() ? stat.size : undefined
  } catch {
    return undefined
  }
}
