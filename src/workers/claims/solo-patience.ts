/** Solo patience: how long a process tries to be alone for a suspect, and when it may try again. */

/**
 * The first try lasts this long. After it another process, whose jobs may end sooner, may try; this one waits for the
 * same time. Each failure doubles the time, so that it grows as long as the longest job.
 */
const firstPatienceMs = 30_000

export class SoloPatience {
  readonly #mono: () => number
  #patienceMs = firstPatienceMs
  /** The earliest instant of the next try. */
  #from = 0

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** Ms until it may try again; 0: now. */
  get dueInMs(): number {
    return Math.max(0, this.#from - this.#mono())
  }

  /** The instant at which a try that begins now gives up, on the monotonic clock. */
  get until(): number {
    return this.#mono() + this.#patienceMs
  }

  gaveUp(): void {
    this.#from = this.#mono() + this.#patienceMs
    this.#patienceMs *= 2
  }

  admitted(): void {
    this.#patienceMs = firstPatienceMs
  }

  /** The process was alone. `isDenied`: a limit denies the suspect, perhaps for long, so others go on without it. */
  ended(isDenied: boolean, restMs: number): void {
    this.#from = this.#mono() + Math.max(isDenied ? firstPatienceMs : 0, restMs)
  }
}
