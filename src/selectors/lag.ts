/**
 * Lag: the queue whose oldest ready job has waited longest comes first. Queues without a known head come last, in the
 * order given.
 */

import type { Candidate, Selector } from './selector.js'

const oldestFirst = (queues: readonly Candidate[]): readonly string[] =>
  queues.toSorted((a, b) => (b.headAgeMs ?? -1) - (a.headAgeMs ?? -1)).map((queue) => queue.name)

/** The ages come with the claim before. The worker asks for heads only for this selector. */
export const lag: Selector = Object.assign(oldestFirst, { needsHeads: true })
