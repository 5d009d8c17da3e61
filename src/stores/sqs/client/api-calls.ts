/** The calls of the API that a store has made: each is paid for. */

import type { SqsCall } from './sqs-api.js'

export class ApiCalls {
  readonly #made = new Map<SqsCall, number>()

  /** `attempts`: how often the call was sent. */
  made(kind: SqsCall, attempts: number): void {
    this.#made.set(kind, (this.#made.get(kind) ?? 0) + attempts)
  }

  /** By kind, and only those that were made. */
  get byKind(): Partial<Record<SqsCall, number>> {
    return Object.fromEntries(this.#made)
  }

  get total(): number {
    return [...this.#made.values()].reduce((sum, made) => sum + made, 0)
  }
}
