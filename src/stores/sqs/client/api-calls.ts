/** The API calls of a store: each is paid for. */

import type { SqsCall } from './sqs-api.js'

export class ApiCalls {
  readonly #made = new Map<SqsCall, number>()

  /** `attempts`: how often the call was sent. */
  made(kind: SqsCall, attempts: number): void {
    this.#made.set(kind, (this.#made.get(kind) ?? 0) + attempts)
  }

  /** The calls that were made, by kind. */
  get byKind(): Partial<Record<SqsCall, number>> {
    return Object.fromEntries(this.#made)
  }

  get total(): number {
    return [...this.#made.values()].reduce((sum, made) => sum + made, 0)
  }
}
