/**
 * Solitude: claims of one process are held in company, or one of them alone. Whoever claims alone waits until nobody here
 * holds anything, and nobody claims before it has settled: should the process die, it is known which job killed it.
 */

export class Solitude {
  #held = 0
  readonly #hermits: Hermit[] = []
  #waiting: (() => void)[] = []

  /** Claims in hand, and claim calls under way, of all workers of this process. */
  get held(): number {
    return this.#held
  }

  /** Whether claims in company may be made. */
  get isOpen(): boolean {
    return this.#hermits.length === 0
  }

  take(claims: number): void {
    this.#held += claims
  }

  give(claims = 1): void {
    this.#held -= claims
    this.#admit()
  }

  /** Resolves as soon as claims in company may be made, perhaps at once. */
  async opened(): Promise<void> {
    while (!this.isOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Keeps all others from claiming, from now until `leave()`; `admitted` resolves when nobody holds anything any more. */
  seek(): Hermit {
    const hermit = new Hermit(() => {
      this.#hermits.splice(this.#hermits.indexOf(hermit), 1)
      this.#admit()
    })
    this.#hermits.push(hermit)
    this.#admit()
    return hermit
  }

  #admit(): void {
    if (this.#hermits.length > 0 && this.#held === 0) this.#hermits[0]!.admit()
    if (this.#waiting.length > 0 && this.isOpen) for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** One who seeks solitude, or has it. */
export class Hermit {
  readonly admitted: Promise<void>
  admit: () => void = () => {}
  readonly #leave: () => void
  #hasLeft = false

  constructor(leave: () => void) {
    this.#leave = leave
    this.admitted = new Promise((resolve) => {
      this.admit = resolve
    })
  }

  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#leave()
  }
}

/** Of this process: a crash takes all of its workers with it. */
export const processSolitude = new Solitude()
