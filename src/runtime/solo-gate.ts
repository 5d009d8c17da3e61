/**
 * The solo gate: the claims of one process are held in company, or one of them alone. A claimer that wants to be alone
 * waits until nothing is held here, and nobody else claims before it has settled. If the process dies, that job is
 * known to be the cause.
 */

export class SoloGate {
  /** Called when a claim is held alone, and when it no longer is, before any other effect. */
  onAlone: (isAlone: boolean) => void = () => {}
  #held = 0
  #isAlone = false
  readonly #soloTurns: SoloTurn[] = []
  readonly #inTheWay = new Set<() => void>()
  #waiting: (() => void)[] = []

  /** The number of held claims and of claim calls under way, of all workers of this process. */
  get held(): number {
    return this.#held
  }

  /** Whether claims in company may be made. */
  get isOpen(): boolean {
    return this.#soloTurns.length === 0
  }

  take(claims: number): void {
    this.#held += claims
    if (this.#soloTurns.length > 0) this.#tell()
  }

  give(claims = 1): void {
    this.#held -= claims
    if (this.#soloTurns.length > 0) this.#tell()
    this.#admit()
  }

  /** Resolves as soon as claims in company may be made, perhaps at once. */
  async opened(): Promise<void> {
    while (!this.isOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Keeps all others from claiming, from now until `leave()`; `admitted` resolves when nothing is held any more. */
  seek(): SoloTurn {
    const soloTurn = new SoloTurn(() => {
      this.#soloTurns.splice(this.#soloTurns.indexOf(soloTurn), 1)
      this.#tell()
      this.#admit()
    })
    this.#soloTurns.push(soloTurn)
    for (const end of this.#inTheWay) end()
    this.#admit()
    return soloTurn
  }

  /**
   * For a claim call that may be under way for long: takes one claim, and calls `end` when somebody seeks to be alone.
   * Call the returned function when the call has ended and its claims are taken.
   */
  takeUntilSought(end: () => void): () => void {
    this.take(1)
    this.#inTheWay.add(end)
    return () => {
      this.#inTheWay.delete(end)
      this.give(1)
    }
  }

  #tell(): void {
    const isAlone = this.#held > 0 && this.#soloTurns.some((soloTurn) => soloTurn.isAdmitted)
    if (isAlone === this.#isAlone) return
    this.#isAlone = isAlone
    this.onAlone(isAlone)
  }

  #admit(): void {
    if (this.#soloTurns.length > 0 && this.#held === 0) this.#soloTurns[0]!.admit()
    if (this.#waiting.length > 0 && this.isOpen) for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** The turn of a claimer that seeks to be alone, or is alone. */
export class SoloTurn {
  readonly admitted: Promise<void>
  /** Nothing else is held: all claims from now on are this claimer's. */
  isAdmitted = false
  admit: () => void = () => {}
  readonly #leave: () => void
  #hasLeft = false

  constructor(leave: () => void) {
    this.#leave = leave
    this.admitted = new Promise((resolve) => {
      this.admit = () => {
        this.isAdmitted = true
        resolve()
      }
    })
  }

  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#leave()
  }
}

/** The gate of this process: a crash kills all of its workers. */
export const processSoloGate = new SoloGate()
