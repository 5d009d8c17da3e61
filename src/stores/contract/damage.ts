/** A damage: a shard whose keys Millrace did not write, or whose keys contradict each other. */

import { hasCode, StoreCorruptError } from '../../core/errors.js'

export interface Damage {
  readonly queue: string
  readonly shard: number
  /** Whether no shard of the queue can be used. */
  readonly isWhole: boolean
  /** Its message names the remedy. */
  readonly error: Error
  /** Ms until the store looks at the shard again; claims leave it out until then. */
  readonly forMs: number
}

/**
 * The error of a call that was carried out for some items only, because the queue of the others is damaged. Its code is
 * the code of the damage.
 */
export class PartlyAnsweredError extends StoreCorruptError {
  /** By item; undefined for an item that was not carried out. */
  readonly answers: readonly (string | undefined)[]

  constructor(cause: StoreCorruptError, answers: readonly (string | undefined)[]) {
    super(cause.message, { cause })
    this.answers = answers
  }
}

/**
 * The answers of a call that was carried out in part; undefined for every other error. Works for errors thrown by
 * another copy of the package too.
 */
export function answersIn(error: unknown): PartlyAnsweredError['answers'] | undefined {
  if (!hasCode(error, 'store-corrupt')) return undefined
  const { answers } = error as Partial<PartlyAnsweredError>
  return Array.isArray(answers) ? answers : undefined
}
