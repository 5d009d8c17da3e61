/** Solo patience: how long a process tries to be alone for a suspect, and when it may try again. */

/**
 * For how long it tries at first. Then another process may try, where jobs end sooner, and this one not before the same time
 * has passed. Each failure doubles it: in the end it is as long as the longest job.
 */
const firstPatienceMs = 30_000

export class SoloPatience {
  readonly #mono: () => number
  #patienceMs = firstPatienceMs
  /** Not before this it is tried again. */
  #from = 0

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** In how many ms it may try again; 0 if it may now. */
  get dueInMs(): number {
    return Math.max(0, this.#from - this.#mono())
  }

  /** When it gives up a try that begins now, on the monotonic clock. */
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

  /** It was alone. `isDenied`: a limit denies what it was alone for, perhaps for long: others go on without it. */
  ended(isDenied: boolean, restMs: number): void {
    this.#from = this.#mono() + Math.max(isDenied ? firstPatienceMs : 0, restMs)
  }
}
