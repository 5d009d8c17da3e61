/**
 * An unkept result: a mark that is stored in place of a result that cannot be kept. It says why, so that a caller that
 * waits for the result, or a reader of the record, learns that there was one.
 */

import type { Payload } from '../values/codec.js'
import { messageOf } from '../values/describe.js'

/** Stored as the codec. No codec is called this: names of codecs have no `+`. */
const mark = '+unkept'
const longestReason = 400

/** `error`: why the result cannot be kept. */
export function unkeptResult(error: unknown): { readonly payload: Payload; readonly codec: string } {
  return { payload: messageOf(error).slice(0, longestReason).toWellFormed(), codec: mark }
}

/** Why the result was not kept; undefined if it was. */
export function whyUnkept(
  result: { readonly payload?: Payload; readonly codec?: string } | undefined,
): string | undefined {
  return result?.codec === mark ? String(result.payload) : undefined
}
