/** Partial replies: those of the shards that were reached. On a cluster some may be away while others work. */

import { hasCode } from '../../../core/error-codes.js'

/** The answers of the reachable shards. Throws the first error if none could be reached, or if one fails otherwise. */
export async function partialReplies<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  const ended = await Promise.allSettled(asked)
  const answers = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const errors = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  const worst = errors.find((error) => !hasCode(error, 'store-unavailable'))
  if (worst !== undefined) throw worst
  if (answers.length === 0 && errors.length > 0) throw errors[0]
  return answers
}
