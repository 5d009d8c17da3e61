/** The denials in a claim's answer: which queues have ready jobs that limits deny, and for how long. Pure. */

import type { Claimed } from '../../stores/contract/claim.js'
import type { LimitedQueues } from '../departures/limited-queues.js'

export interface Denial {
  readonly queue: string
  /** Ms until the limit opens by itself; absent if running jobs must end first. */
  readonly forMs?: number
}

/** `placesOf`: the number of claim entries that cover a whole queue. */
export function denialsIn(
  { waits }: Pick<Claimed, 'waits'>,
  limited: LimitedQueues,
  placesOf: (queue: string) => number,
): Denial[] {
  const denying = waits.filter(({ reason }) => reason === 'throttled' || reason === 'full')
  return [...new Set(denying.map(({ queue }) => queue))].flatMap((queue) => {
    const of = denying.filter((wait) => wait.queue === queue)
    const isWhole = of.some(({ reason }) => limited.isWhole(queue, reason as 'throttled' | 'full'))
    // The answer is silent about some of its shards: there may be jobs in them.
    const told = waits.filter((wait) => wait.queue === queue && wait.reason !== 'suspect')
    if (!isWhole && told.length < placesOf(queue)) return []
    const times = of.flatMap(({ reason, forMs }) => (reason === 'throttled' && forMs !== undefined ? [forMs] : []))
    return [times.length === 0 ? { queue } : { queue, forMs: Math.min(...times) }]
  })
}
