/** Lag: the queue whose oldest ready job waits longest comes first; queues without a known head come last, in the order given. */

import type { Candidate, Selector } from './selector.js'

const oldestFirst = (queues: readonly Candidate[]): readonly string[] =>
  queues.toSorted((a, b) => (b.headAgeMs ?? -1) - (a.headAgeMs ?? -1)).map((queue) => queue.name)

/** Ages come with the claim before; for them alone does the worker ask for heads. */
export const lag: Selector = Object.assign(oldestFirst, { needsHeads: true })
