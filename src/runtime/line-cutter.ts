/** The line cutter: joins the pieces of a stream into whole lines. */

export class LineCutter {
  readonly #longest: number
  #rest = ''
  #isSkipping = false

  /** A line of more than `longest` characters is left out: a writer without line breaks must not fill our memory. */
  constructor(longest: number) {
    this.#longest = longest
  }

  /** The lines that this piece completes, without their breaks. */
  cut(piece: string): string[] {
    const lines = (this.#rest + piece).split('\n')
    this.#rest = lines.pop()!
    if (lines.length > 0 && this.#isSkipping) {
      this.#isSkipping = false
      lines.shift()
    }
    if (this.#isSkipping || this.#rest.length > this.#longest) {
      this.#isSkipping = true
      this.#rest = ''
    }
    return lines.filter(({ length }) => length <= this.#longest)
  }
}
