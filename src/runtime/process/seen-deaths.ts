/**
 * The seen deaths: how worker processes of this machine ended, as the supervisor of this process saw it. The claimer
 * that ends the claims of such a worker reports it with their jobs.
 */

import { ProcessDiedError } from '../../core/errors.js'

/** The end of a process; both are null if it is not known. */
export interface SeenDeath {
  readonly pid: number
  readonly code: number | null
  readonly signal: string | null
}

/** A claim is ended within seconds of a death; many processes that die in a loop must not pile up. */
const mostKept = 100

export class SeenDeaths {
  readonly #deaths: SeenDeath[] = []

  see(death: SeenDeath): void {
    this.#deaths.push(death)
    if (this.#deaths.length > mostKept) this.#deaths.shift()
  }

  /** The latest, oldest first. */
  get all(): readonly SeenDeath[] {
    return this.#deaths
  }

  /** Undefined if nobody saw that process end. */
  of(pid: number): ProcessDiedError | undefined {
    const death = this.#deaths.findLast((one) => one.pid === pid)
    return death && new ProcessDiedError(`the worker process (${pid})`, death)
  }
}

/** The deaths that this process was told of. */
export const processSeenDeaths = new SeenDeaths()
