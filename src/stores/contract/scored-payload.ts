/** A payload of an ordered job, with its place among the others. */

import type { Payload } from '../../core/values/codec.js'

export interface ScoredPayload {
  /** Its place among the payloads of its id: ascending, finite. */
  readonly score: number
  readonly payload: Payload
  /** Absent: `json`. */
  readonly codec?: string
  readonly meta?: Payload
}
