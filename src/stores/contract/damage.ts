/** A damage: a shard of a queue whose keys are not ours, or do not fit together. */

import { hasCode } from '../../core/error-codes.js'
import { StoreCorruptError } from '../../core/errors.js'

export interface Damage {
  readonly queue: string
  readonly shard: number
  /** Whether no shard of the queue can be used. */
  readonly isWhole: boolean
  /** Names the remedy. */
  readonly error: Error
  /** After how many ms it is looked at again; until then claims leave it out. */
  readonly forMs: number
}

/** Some items of a call were carried out and others not, as their queue is damaged; the code is that of the damage. */
export class PartlyAnsweredError extends StoreCorruptError {
  /** By item; undefined where it was not carried out. */
  readonly answers: readonly (string | undefined)[]

  constructor(cause: StoreCorruptError, answers: readonly (string | undefined)[]) {
    super(cause.message, { cause })
    this.answers = answers
  }
}

/** The answers of a call that was carried out in part; undefined for every other error. Another copy of the package may have thrown it. */
export function answersIn(error: unknown): PartlyAnsweredError['answers'] | undefined {
  if (!hasCode(error, 'store-corrupt')) return undefined
  const { answers } = error as Partial<PartlyAnsweredError>
  return Array.isArray(answers) ? answers : undefined
}
