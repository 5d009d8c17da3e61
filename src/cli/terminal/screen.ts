/** The screen: the whole terminal while a command redraws a view on it, with the keys that leave it. */

interface ScreenInput {
  readonly isTTY?: boolean
  setRawMode?(raw: boolean): unknown
  resume(): unknown
  pause(): unknown
  on(event: 'data', heard: (bytes: Buffer) => void): unknown
  off(event: 'data', heard: (bytes: Buffer) => void): unknown
}

interface ScreenOutput {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
  on(event: 'resize', heard: () => void): unknown
  off(event: 'resize', heard: () => void): unknown
}

/** Switches to the terminal's other buffer, so that the old content comes back later, and hides the cursor. */
const enter = '\u001b[?1049h\u001b[?25l'
const leave = '\u001b[?25h\u001b[?1049l'
/** `q`, and Ctrl-C, which is an ordinary key while the terminal passes on every key. */
const leavingKeys = ['q', 'Q', '\u0003']

export class Screen {
  readonly #input: ScreenInput
  readonly #output: ScreenOutput
  readonly #heard: (bytes: Buffer) => void
  readonly #resized: () => void

  /** Takes over the terminal. `left`: a leaving key was pressed. `resized`: the size has changed. */
  constructor(
    left: () => void,
    resized: () => void,
    { input, output }: { input: ScreenInput; output: ScreenOutput } = { input: process.stdin, output: process.stdout },
  ) {
    this.#input = input
    this.#output = output
    this.#resized = resized
    this.#heard = (bytes) => {
      if (leavingKeys.some((key) => bytes.includes(key))) left()
    }
    output.write(enter)
    output.on('resize', resized)
    if (input.isTTY !== true) return
    input.setRawMode?.(true)
    input.on('data', this.#heard)
    input.resume()
  }

  get columns(): number {
    return this.#output.columns || 80
  }

  get rows(): number {
    return this.#output.rows || 24
  }

  /** Replaces the content of the screen. Lines below the last row are left out. */
  draw(lines: readonly string[]): void {
    const shown = lines.slice(0, this.rows).map((line) => `${line}\u001b[K`)
    // No line break after the last line, which would scroll all of them up.
    this.#output.write(`\u001b[H${shown.join('\r\n')}\u001b[J`)
  }

  /** Gives the terminal back in its old state. */
  close(): void {
    this.#output.off('resize', this.#resized)
    this.#output.write(leave)
    if (this.#input.isTTY !== true) return
    this.#input.off('data', this.#heard)
    this.#input.setRawMode?.(false)
    this.#input.pause()
  }
}
